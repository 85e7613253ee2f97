/**
 * Reads a `multipart/form-data` body as it arrives. The parts keep the received buffers, so a body is held once and never copied.
 * Bounded in parts and in header size; the size of the body is bounded by who receives it. Knows no field.
 */
import { MaxHeaderSizeExceededError, MaxPartsExceededError, MultipartParser } from '@mjackson/multipart-parser';
import { sizeOf } from './pieces.ts';
import { GatewayError } from '../canonical/error.ts';

export interface FormPart {
  readonly name: string;
  readonly filename?: string;
  /** As the part's own `content-type` says; lower case, without parameters. */
  readonly mime?: string;
  readonly chunks: readonly Uint8Array[];
  readonly size: number;
}

export interface MultipartReader {
  /** Keeps the chunk. Throws GatewayError (400, `param` `body`) when the body is not what its boundary promises. */
  push(chunk: Uint8Array): void;
  /** All parts in order. Throws when the closing boundary is missing: the body was cut off. */
  end(): readonly FormPart[];
}

export interface MultipartLimits {
  readonly maxBytes: number;
  readonly maxParts?: number;
  readonly maxHeaderBytes?: number;
}

const MAX_PARTS = 100;
const MAX_HEADER_BYTES = 8 * 1024;
/** Smaller chunks are gathered. */
const SMALL_BYTES = 4 * 1024;
const GATHER_BYTES = 16 * 1024;

/**
 * The boundary of a `multipart/form-data` content type; undefined for every other type. Throws where the boundary is missing or
 * unusable.
 */
export function formBoundary(contentType: string | undefined): string | undefined {
  if (contentType === undefined || !/^multipart\/form-data\s*(;|$)/i.test(contentType.trim())) return undefined;
  const found = /;\s*boundary=(?:"([^"]*)"|([^\s;]*))/i.exec(contentType);
  const boundary = found?.[1] ?? found?.[2] ?? '';
  // RFC 2046, section 5.1.1: 1 to 70 characters, no blank at the end.
  if (!/^[\x20-\x7e]{0,69}[\x21-\x7e]$/.test(boundary)) throw malformed('The content-type of the form has no usable boundary.');
  return boundary;
}

export function createMultipartReader(boundary: string, limits: MultipartLimits): MultipartReader {
  const { maxParts = MAX_PARTS, maxHeaderBytes = MAX_HEADER_BYTES } = limits;
  const parser = new MultipartParser(boundary, {
    maxParts,
    maxHeaderSize: maxHeaderBytes,
    maxFileSize: limits.maxBytes,
    maxTotalSize: limits.maxBytes,
  });
  const parts: FormPart[] = [];
  const opening = Buffer.from(`\r\n--${boundary}`);
  /**
   * What came before the first boundary; undefined once it came. A boundary begins a line, as if a line ended before the body.
   */
  let preamble: Buffer | undefined = Buffer.from('\r\n');
  let begun = false;
  let over = false;
  let gathered: Buffer | undefined;
  let fill = 0;

  const parse = (chunk: Uint8Array): void => {
    // What follows the closing boundary means nothing (RFC 2046: the epilogue).
    if (over || chunk.length === 0) return;
    begun = true;
    const form = preamble === undefined ? chunk : fromBoundary(preamble, chunk);
    if (form === undefined) return;
    try {
      for (const part of parser.write(form)) parts.push(readPart(part, parts.length));
    } catch (thrown) {
      if (isFinished(parser)) over = true;
      else throw refusalOf(thrown, maxParts, maxHeaderBytes);
    }
  };

  /**
   * The body from its first boundary on, which the parser must begin with; what stands before it means nothing (RFC 2046: the
   * preamble).
   */
  const fromBoundary = (before: Buffer, chunk: Uint8Array): Uint8Array | undefined => {
    const head = Buffer.concat([before, chunk.subarray(0, maxHeaderBytes)]);
    const at = head.indexOf(opening);
    if (at === -1) {
      if (head.length > maxHeaderBytes) throw noBoundary();
      preamble = head;
      return undefined;
    }
    preamble = undefined;
    const from = at + '\r\n'.length;
    return from >= before.length ? chunk.subarray(from - before.length) : Buffer.concat([before.subarray(from), chunk]);
  };

  const flush = (): void => {
    if (gathered === undefined) return;
    const chunk = gathered.subarray(0, fill);
    // The parts keep what they were given: the next chunks need a new buffer.
    gathered = undefined;
    fill = 0;
    parse(chunk);
  };

  return {
    push(chunk) {
      if (chunk.length >= SMALL_BYTES) {
        flush();
        parse(chunk);
        return;
      }
      if (gathered !== undefined && fill + chunk.length > gathered.length) flush();
      // A body that drips in must not be held as millions of tiny buffers.
      gathered ??= Buffer.allocUnsafeSlow(GATHER_BYTES);
      gathered.set(chunk, fill);
      fill += chunk.length;
    },
    end() {
      flush();
      if (begun && preamble !== undefined) throw noBoundary();
      if (!isFinished(parser)) {
        throw malformed(
          begun ? 'The form ends before its closing boundary: the body was cut off.' : 'The body is empty; a form is needed.',
        );
      }
      return parts;
    },
  };
}

interface ParsedPart {
  readonly name: string | undefined;
  readonly filename: string | undefined;
  readonly mediaType: string | undefined;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly content: readonly Uint8Array[];
}

/** What the parser reads a `filename*` from; its quotation marks are optional. */
const ENCODED_NAME = /(?:^|;)\s*filename\*\s*=\s*"?([\w-]+'|)/g;

/**
 * The parser writes of each name in a character set that it does not know to standard error, in the client's words and with a
 * stack, past the log and its bound.
 */
function checkName(part: ParsedPart, index: number): void {
  for (const [, charset = ''] of (part.headers['content-disposition'] ?? '').matchAll(ENCODED_NAME)) {
    if (!isCharset(charset.slice(0, -1)))
      throw malformed(`Part ${index + 1} of the form has a name in an unknown character set.`);
  }
}

function isCharset(label: string): boolean {
  try {
    return new TextDecoder(label).encoding !== '';
  } catch {
    // The answer to the question, not a failure.
    return false;
  }
}

function readPart(part: ParsedPart, index: number): FormPart {
  checkName(part, index);
  const { name, filename, mediaType } = part;
  if (name === undefined || name === '') throw malformed(`Part ${index + 1} of the form has no name.`);
  return {
    name,
    ...(filename === undefined ? {} : { filename }),
    ...(mediaType === undefined ? {} : { mime: mediaType.toLowerCase() }),
    chunks: part.content,
    size: sizeOf(part.content),
  };
}

/** The parser tells its state only by throwing. */
function isFinished(parser: MultipartParser): boolean {
  try {
    parser.finish();
    return true;
  } catch {
    // It waits for more: the answer to the question, not a failure.
    return false;
  }
}

function refusalOf(thrown: unknown, maxParts: number, maxHeaderBytes: number): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  if (thrown instanceof MaxPartsExceededError) return malformed(`The form has more than ${maxParts} parts.`);
  if (thrown instanceof MaxHeaderSizeExceededError)
    return malformed(`A part of the form has headers over ${maxHeaderBytes} bytes.`);
  // Also headers that are no UTF-8: whatever the parser cannot read is the client's body.
  return malformed('The form cannot be read: the boundary or a part header is wrong.', thrown);
}

function noBoundary(): GatewayError {
  return malformed('The form does not begin with the boundary that its content-type names.');
}

function malformed(message: string, cause?: unknown): GatewayError {
  return new GatewayError('invalid_request', message, { param: 'body', ...(cause === undefined ? {} : { cause }) });
}
