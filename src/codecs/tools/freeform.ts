/**
 * Freeform custom tools for a wire that has functions only: a freeform tool becomes a function with one string parameter, and its
 * calls are turned back. Does not know the form of tools and calls in any dialect.
 */
import type { ToolName } from '../canonical/item.ts';
import { isObject, type JsonObject, tryJson } from '../canonical/json.ts';
import type { Tool } from '../canonical/request.ts';
import { declaredTool } from './names.ts';

/** The one parameter of the function that stands for a freeform tool. */
const FREEFORM_INPUT = 'input';

export type CustomTool = Extract<Tool, { kind: 'custom' }>;

/** The declared custom tool of this name. */
export function customToolOf(tools: readonly Tool[], name: ToolName): CustomTool | undefined {
  const tool = declaredTool(tools, name);
  return tool?.kind === 'custom' ? tool : undefined;
}

/** The parameters of the function; a grammar becomes the description of its string. */
export function freeformSchema(format: JsonObject | undefined): JsonObject {
  const definition =
    format?.['type'] === 'grammar' && typeof format['definition'] === 'string' ? format['definition'] : undefined;
  const description = definition === undefined ? 'The whole input of the tool, as text.' : `Text of this grammar:\n${definition}`;
  return {
    type: 'object',
    properties: { [FREEFORM_INPUT]: { type: 'string', description } },
    required: [FREEFORM_INPUT],
  };
}

/** The arguments of the function for a freeform text. */
export function wrapFreeform(text: string): string {
  return JSON.stringify({ [FREEFORM_INPUT]: text });
}

/** The freeform text of whole arguments. */
export function unwrapFreeform(wire: string): string {
  const reader = new FreeformReader();
  reader.push(wire);
  reader.end();
  return reader.text;
}

const OPENING = new RegExp(`^\\s*\\{\\s*"${FREEFORM_INPUT}"\\s*:\\s*"`);
/** Text that may still become {@link OPENING}. */
const MAYBE_OPENING = /^\s*(?:\{\s*(?:"(?:i(?:n(?:p(?:ut?)?)?)?)?|"input"\s*(?::\s*)?)?)?$/;
const LONGEST_OPENING = 1024;
const LONGEST_ESCAPE = '\\u0000'.length;
/**
 * A run of characters or an escape inside a JSON string. Matched piece by piece, since one match over megabytes would overflow
 * the stack.
 */
const INSIDE = /[^"\\]+|\\u[0-9a-fA-F]{4}|\\u(?=[0-9a-fA-F]{0,3}[^0-9a-fA-F])|\\[^u]/y;
/** The first half of a surrogate pair, escaped or not, at the end of the text. */
const HALF_PAIR = /(?:[\uD800-\uDBFF]|\\u[dD][89abAB][0-9a-fA-F]{2})$/;

/**
 * Reads the freeform text out of arguments that arrive in pieces. It is given out piece by piece where they are `{"input": "…"}`
 * or no JSON object (models also answer with the plain text), and at the end where they are another object, of which the only
 * string counts.
 */
export class FreeformReader {
  /** The text so far. */
  text = '';
  /** `bare`: plain text. `waiting`: another object, which is read at the end. */
  #state: 'opening' | 'inside' | 'closed' | 'bare' | 'waiting' = 'opening';
  #unread = '';

  /** Reads one more piece; returns the text that it adds, which may be empty. */
  push(piece: string): string {
    if (this.#state === 'closed') return '';
    this.#unread += piece;
    if (this.#state === 'opening') this.#open();
    if (this.#state === 'bare') return this.#take(this.#unread.length);
    return this.#state === 'inside' ? this.#read() : '';
  }

  /** The arguments end here; returns the text that was not known before. */
  end(): string {
    if (this.#state !== 'opening' && this.#state !== 'waiting') return '';
    const fresh = this.#unread.trim() === '' ? '' : onlyString(this.#unread);
    this.text += fresh;
    return fresh;
  }

  /** False while the string around the text is open: the arguments were cut. */
  get isWhole(): boolean {
    return this.#state !== 'inside';
  }

  #open(): void {
    const opening = OPENING.exec(this.#unread);
    if (opening !== null) {
      this.#unread = this.#unread.slice(opening[0].length);
      this.#state = 'inside';
    } else if (!MAYBE_OPENING.test(this.#unread)) {
      this.#state = this.#unread.trimStart().startsWith('{') ? 'waiting' : 'bare';
    } else if (this.#unread.length > LONGEST_OPENING) {
      // This is nearly all white space, which each further piece would scan again.
      this.#state = 'waiting';
    }
  }

  #read(): string {
    const length = insideLength(this.#unread);
    if (this.#unread[length] === '"') {
      this.#state = 'closed';
      return this.#take(length);
    }
    const end = this.#unread.slice(Math.max(0, length - LONGEST_ESCAPE), length);
    return this.#take(length - (HALF_PAIR.exec(end)?.[0].length ?? 0));
  }

  /** Takes that much of the unread arguments and returns its text. */
  #take(length: number): string {
    const piece = this.#unread.slice(0, length);
    this.#unread = this.#unread.slice(length);
    const fresh = this.#state === 'bare' ? piece : unescaped(piece);
    this.text += fresh;
    return fresh;
  }
}

/** The length of the beginning of `text` that is certainly inside the string. */
function insideLength(text: string): number {
  let end = 0;
  INSIDE.lastIndex = 0;
  while (INSIDE.test(text)) end = INSIDE.lastIndex;
  return end;
}

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ['\\', '\\'],
  ['/', '/'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
]);

/**
 * The value of the inside of a JSON string. What JSON forbids and models write (control characters, unknown escapes) stands for
 * itself.
 */
function unescaped(raw: string): string {
  if (!raw.includes('\\')) return raw;
  const legal = tryJson(`"${raw}"`);
  if (typeof legal === 'string') return legal;
  return raw.replace(/\\(?:u([0-9a-fA-F]{4})|([^u]))/g, (whole, code: string | undefined, character: string | undefined) =>
    code === undefined ? (ESCAPES.get(character ?? '') ?? whole) : String.fromCharCode(Number.parseInt(code, 16)),
  );
}

/** The `input` of an object, or its only member if that is a string (models also write `patch`); otherwise the whole text. */
function onlyString(wire: string): string {
  const value = tryJson(wire);
  if (!isObject(value)) return wire;
  const input = value[FREEFORM_INPUT];
  if (typeof input === 'string') return input;
  const members = Object.values(value);
  const [only] = members;
  return members.length === 1 && typeof only === 'string' ? only : wire;
}
