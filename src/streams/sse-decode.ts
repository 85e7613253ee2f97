/**
 * Bytes of a server-sent event stream to events (https://html.spec.whatwg.org/multipage/server-sent-events.html). Only whole
 * lines reach the parser, so no cut of the bytes can change the events. Knows no `[DONE]`, no JSON meaning and no vendor.
 *
 * Everything that is syntax is ASCII, so the bytes are parsed as they are, one character each, and only an event that has other
 * characters is decoded: one of them would make two bytes of every character of the whole read.
 *
 * Stricter than a browser in two ways, since a failure must not look like silence. An event without its blank line at the end is
 * thrown, not dropped. Text that is no event stream is thrown, not skipped: a line that begins with `{`, `[`, `<` or `error: {`
 * (an error object written raw into the stream, a JSON answer, an HTML page), and any other lines of unknown fields if the body
 * ends without one event. Other unknown fields in a stream that has events are ignored, as the standard says.
 */
// The global `Buffer` is looked up anew each time.
import { Buffer, isAscii } from 'node:buffer';
import { createParser, type ParseError } from 'eventsource-parser';
import { ForeignText, startsForeignText } from './foreign-text.ts';
import type { Stage } from './stage.ts';
import { StreamError } from './stream-error.ts';

export interface SseEvent {
  /** The `event` field; undefined when absent or empty. */
  readonly event: string | undefined;
  /** All `data` lines, joined with LF. */
  readonly data: string;
  /** `data` holds its UTF-8 bytes, one character each: see {@link SseDecodeOptions.undecodedBytes}. */
  readonly isUndecoded?: true;
}

export interface SseDecodeOptions {
  /** The longest `data` of one event in UTF-8 bytes, and about the longest line. Over it: reason `event_too_large`. */
  readonly maxEventBytes: number;
  /** An event of so many bytes or more that is not ASCII alone is left to its reader to decode, in steps. Default: none. */
  readonly undecodedBytes?: number;
}

/** Throws StreamError with reason `truncated_event`, `event_too_large`, `not_event_stream` (with `text`) or `encoded_body`. */
export function sseDecode(options: SseDecodeOptions): Stage<Uint8Array, SseEvent> {
  return new SseDecoder(options);
}

/** The longest field name with its colon and space, which a line has beside its data. */
const FIELD_PREFIX_BYTES = 'event: '.length;
/** Of the line that the end cut off, for the log. */
const MOST_TOLD = 1024;
const BYTE_ORDER_MARK = '\xef\xbb\xbf';
const MAGIC: readonly { readonly name: string; readonly bytes: readonly number[] }[] = [
  { name: 'gzip', bytes: [0x1f, 0x8b] },
  { name: 'zstd', bytes: [0x28, 0xb5, 0x2f, 0xfd] },
];
const LONGEST_MAGIC = 4;
/** How a line looks that the end cut off inside an event. */
const FIELD_BEGINNING = /^(?:(?:data|event|id|retry)(?::|$)|(?:d|da|dat|e|ev|eve|even|i|r|re|ret|retr)$)/;

class SseDecoder implements Stage<Uint8Array, SseEvent> {
  readonly ended = false;
  readonly #options: SseDecodeOptions;
  readonly #maxLineBytes: number;
  readonly #undecodedBytes: number;
  readonly #parser;
  /** What may become the byte order mark at the beginning; undefined once that is known. */
  #mark: string | undefined = '';
  /** Whether what is parsed now may hold more than ASCII. */
  #wide = false;
  /** The first bytes; undefined once they are known to be text. */
  #head: number[] | undefined = [];
  /**
   * The line that is still open, in pieces, so that a long one is joined once. A character is a byte, as in every text before
   * `decoded`.
   */
  readonly #open: string[] = [];
  #openBytes = 0;
  /** Whether the open line begins as foreign text; undefined: not looked at yet. */
  #openIsForeign: boolean | undefined;
  /** Set once text was met that is no event stream; nothing is parsed after that. */
  #foreign: ForeignText | undefined;
  /** Unknown lines before the first event: the whole body may turn out to be no event stream. */
  #unknown = new ForeignText();
  #dispatched = false;
  /** Where the parser's events go during one call. */
  #out: SseEvent[] = [];
  /** Set while the end asks the parser whether an event is open. */
  #probe: { found: boolean } | undefined;

  constructor(options: SseDecodeOptions) {
    this.#options = options;
    this.#maxLineBytes = options.maxEventBytes + FIELD_PREFIX_BYTES;
    this.#undecodedBytes = options.undecodedBytes ?? Number.POSITIVE_INFINITY;
    this.#parser = createParser({
      // Two above the limit, which is enforced exactly on dispatch: the probe at the end adds one character.
      maxBufferSize: options.maxEventBytes + 2,
      onEvent: (event) => this.#dispatch(event.event, event.data),
      onError: (error) => this.#refused(error),
    });
    // The parser would strip a second byte order mark; a first blank line ends its search.
    this.#parser.feed('\n');
  }

  push(bytes: Uint8Array, out: SseEvent[]): void {
    if (this.#head !== undefined) this.#sniff(bytes, this.#head);
    this.#out = out;
    this.#wide ||= !isAscii(bytes);
    const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const text = buffer.toString('latin1');
    this.#take(this.#mark === undefined ? text : this.#unmarked(this.#mark + text));
    // Nothing is open after a blank line.
    if (text.endsWith('\n\n') || text.endsWith('\r\n\r\n')) this.#wide = false;
  }

  end(): void {
    this.#take(this.#mark ?? '');
    const rest = this.#open.join('');
    if (this.#foreign !== undefined || startsForeignText(rest)) {
      this.#foreign ??= new ForeignText();
      this.#foreign.add(decoded(rest));
      throw this.#foreign.error();
    }
    if (FIELD_BEGINNING.test(rest) || this.#hasOpenEvent()) {
      const told = rest === '' ? {} : { text: decoded(rest.slice(0, MOST_TOLD)) };
      throw new StreamError('truncated_event', 'the stream ended inside an event', told);
    }
    if (!rest.startsWith(':')) this.#ignore(rest);
    if (!this.#dispatched && !this.#unknown.blank) throw this.#unknown.error();
  }

  /** The beginning without its byte order mark; nothing while that may still come: no event is so short. */
  #unmarked(beginning: string): string {
    const isShort = beginning.length < BYTE_ORDER_MARK.length;
    this.#mark = isShort ? beginning : undefined;
    if (isShort) return '';
    return beginning.startsWith(BYTE_ORDER_MARK) ? beginning.slice(BYTE_ORDER_MARK.length) : beginning;
  }

  /** Hands whole lines to the parser and keeps the open one. */
  #take(text: string): void {
    if (text === '') return;
    const end = lastLineEnd(text);
    if (end === text.length && this.#open.length === 0) {
      this.#parse(text);
      return;
    }
    if (end > 0) {
      this.#open.push(end === text.length ? text : text.slice(0, end));
      const lines = this.#open.length === 1 ? (this.#open[0] ?? '') : this.#open.join('');
      this.#open.length = 0;
      this.#openBytes = 0;
      this.#openIsForeign = undefined;
      this.#parse(lines);
    }
    if (end < text.length) {
      this.#open.push(end === 0 ? text : text.slice(end));
      this.#openBytes += text.length - end;
      this.#boundOpenLine();
    }
  }

  #parse(lines: string): void {
    if (this.#foreign !== undefined) {
      this.#foreign.addLines(decoded(lines));
      return;
    }
    const tooLong = lines.length > this.#maxLineBytes ? firstLongLine(lines, this.#maxLineBytes) : -1;
    try {
      this.#parser.feed(tooLong === -1 ? lines : lines.slice(0, tooLong));
    } catch (reason) {
      if (!(reason instanceof ForeignLine)) throw reason;
      this.#foreign = new ForeignText();
      this.#foreign.addLines(decoded(lines.slice(firstForeignLine(lines))));
      return;
    }
    if (tooLong !== -1) throw this.#tooLarge();
  }

  /** An open line may hold no more than a whole one; foreign text is cut at its own bound. */
  #boundOpenLine(): void {
    if (this.#foreign !== undefined) {
      if (this.#openBytes > this.#foreign.left) this.#cutForeign(this.#foreign);
    } else if (this.#openBytes > Math.min(this.#maxLineBytes, ForeignText.MAX_CHARS)) {
      this.#openIsForeign ??= startsForeignText(this.#open.join(''));
      if (this.#openIsForeign) {
        if (this.#openBytes > ForeignText.MAX_CHARS) this.#cutForeign(new ForeignText());
      } else if (this.#openBytes > this.#maxLineBytes) {
        throw this.#tooLarge();
      }
    }
  }

  #cutForeign(foreign: ForeignText): void {
    const line = decoded(this.#open.join(''));
    if (line.length > foreign.left) foreign.addLines(line);
  }

  #dispatch(event: string | undefined, data: string): void {
    if (this.#probe !== undefined) {
      this.#probe.found = event !== undefined || data !== '';
      return;
    }
    if (data.length > this.#options.maxEventBytes) throw this.#tooLarge();
    this.#dispatched = true;
    if (!this.#wide) this.#out.push({ event, data });
    else if (data.length < this.#undecodedBytes) this.#out.push({ event: event && named(event), data: decoded(data) });
    else this.#out.push({ event: event && named(event), data, isUndecoded: true });
  }

  #refused(error: ParseError): void {
    if (error.type === 'max-buffer-size-exceeded') throw this.#tooLarge();
    if (error.type !== 'unknown-field') return;
    const line = error.line ?? '';
    if (startsForeignText(line)) throw new ForeignLine();
    this.#ignore(line);
  }

  #ignore(line: string): void {
    if (line !== '' && !this.#dispatched) this.#unknown.addLines(`${decoded(line)}\n`);
  }

  /** The parser tells nobody what it holds: a data line and a blank line make it do so. */
  #hasOpenEvent(): boolean {
    const probe = { found: false };
    this.#probe = probe;
    this.#parser.feed('data\n\n');
    this.#probe = undefined;
    return probe.found;
  }

  #sniff(bytes: Uint8Array, head: number[]): void {
    for (let i = 0; i < bytes.length && head.length < LONGEST_MAGIC; i++) head.push(bytes[i] ?? 0);
    let open = false;
    for (const { name, bytes: magic } of MAGIC) {
      const shared = Math.min(head.length, magic.length);
      if (!magic.slice(0, shared).every((byte, i) => byte === head[i])) continue;
      if (shared === magic.length) throw new StreamError('encoded_body', `the body is ${name} although identity was asked for`);
      open = true;
    }
    if (!open) this.#head = undefined;
  }

  #tooLarge(): StreamError {
    return new StreamError('event_too_large', `an event or line is over ${this.#options.maxEventBytes} bytes`);
  }
}

/** The text of UTF-8 bytes that stand as characters. What is no UTF-8 becomes U+FFFD. */
function decoded(bytes: string): string {
  // A byte over 0x7f counts as two.
  return Buffer.byteLength(bytes) === bytes.length ? bytes : Buffer.from(bytes, 'latin1').toString();
}

/** {@link decoded} for a name, which is so short that looking costs less than asking. */
function named(bytes: string): string {
  for (let at = 0; at < bytes.length; at++) if (bytes.charCodeAt(at) > 0x7f) return decoded(bytes);
  return bytes;
}

/** Leaves the parser in the middle of its lines; never leaves this file. */
class ForeignLine extends Error {}

/** The index after the last line end; a final CR counts, since the parser knows that its LF may follow. */
function lastLineEnd(text: string): number {
  const last = text.charCodeAt(text.length - 1);
  if (last === 10 || last === 13) return text.length;
  return Math.max(text.lastIndexOf('\n'), text.lastIndexOf('\r')) + 1;
}

/** Where the first line over `maxBytes` begins that is not foreign text; -1 if there is none. */
function firstLongLine(lines: string, maxBytes: number): number {
  for (const match of lines.matchAll(/[^\r\n]+/g)) {
    if (match[0].length > maxBytes && !startsForeignText(match[0])) return match.index;
  }
  return -1;
}

/** Where the first line of foreign text begins. */
function firstForeignLine(lines: string): number {
  for (const match of lines.matchAll(/[^\r\n]+/g)) {
    if (startsForeignText(match[0])) return match.index;
  }
  return lines.length;
}
