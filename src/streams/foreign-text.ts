/**
 * Text inside a body that is no event stream: some servers write an error object raw between the events, or as a field that no
 * event has, some answer with JSON or HTML. It is gathered (bounded) so that the reader of the error can tell what it was.
 */
import { StreamError } from './stream-error.ts';

/** An error object as a field of an event, which no event has (llama.cpp until late 2025). */
const ERROR_FIELD = /^error:[ \t]*(?=\{)/;

/** Nothing in an event stream that anybody sends begins so; what an upstream sends instead of one does. */
export function startsForeignText(line: string): boolean {
  return /^[ \t]*[{[<]/.test(line) || ERROR_FIELD.test(line);
}

const CLOSER: { readonly [opener: string]: string } = { '{': '}', '[': ']' };
/** A closing bracket at the beginning of a line is where a printed value ends; trying more often would cost too much. */
const MAX_PARSE_ATTEMPTS = 8;

/** What was gathered so far, at most {@link ForeignText.MAX_CHARS}. */
export class ForeignText {
  static readonly MAX_CHARS = 64 * 1024;
  #text = '';
  /** What would close the value that the text begins with, if it begins with one. */
  #closer: string | undefined;
  #attempts = 0;

  get blank(): boolean {
    return this.#text.trim() === '';
  }

  /** How many characters fit. */
  get left(): number {
    return ForeignText.MAX_CHARS - this.#text.length;
  }

  /** Gathers without looking. What is over the bound is cut. */
  add(text: string): void {
    const more = this.#text === '' ? text.replace(ERROR_FIELD, '') : text;
    this.#text += more.slice(0, this.left);
  }

  /**
   * Gathers line by line, and throws {@link error} once the text is a whole JSON value or over the bound: no need to wait for the
   * end.
   */
  addLines(lines: string): void {
    for (const [line] of lines.matchAll(/[^\r\n]*(?:\r\n|\r|\n|$)/g)) {
      const over = line.length > this.left;
      const first = this.#text === '';
      this.add(line);
      if (first) this.#closer = CLOSER[this.#text.trimStart().charAt(0)];
      if (over || this.#isWholeJson(line, first)) throw this.error();
    }
  }

  error(): StreamError {
    return new StreamError('not_event_stream', 'the body holds text that is no event stream', { text: this.#text.trim() });
  }

  #isWholeJson(line: string, first: boolean): boolean {
    const closer = this.#closer;
    if (closer === undefined || this.#attempts >= MAX_PARSE_ATTEMPTS) return false;
    if (!(first ? line.trimEnd().endsWith(closer) : line.startsWith(closer))) return false;
    this.#attempts++;
    try {
      JSON.parse(this.#text);
      return true;
    } catch {
      // Not whole yet: a nested value ended here.
      return false;
    }
  }
}
