/**
 * Freeform custom tools on a wire that has functions only: a function with one string, in and out again. Knows the wrapping;
 * does not know how any dialect spells tools or calls.
 */
import type { ToolName } from '../canonical/item.ts';
import { isObject, type JsonObject, tryJson } from '../canonical/json.ts';
import type { Tool } from '../canonical/request.ts';
import { sameTool } from './names.ts';

/** The one parameter of the function that stands for a freeform tool. */
const FREEFORM_INPUT = 'input';

export type CustomTool = Extract<Tool, { kind: 'custom' }>;

/** The declared custom tool of this name. */
export function customToolOf(tools: readonly Tool[], name: ToolName): CustomTool | undefined {
  for (const tool of tools) {
    if (tool.kind === 'custom' && sameTool(tool.tool, name)) return tool;
  }
  return undefined;
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

/** Whole arguments as the text that they stand for. */
export function unwrapFreeform(wire: string): string {
  const reader = new FreeformReader();
  reader.push(wire);
  reader.end();
  return reader.text;
}

const OPENING = new RegExp(`^\\s*\\{\\s*"${FREEFORM_INPUT}"\\s*:\\s*"`);
/** What may still become {@link OPENING} when more arrives. */
const MAYBE_OPENING = /^\s*(?:\{\s*(?:"(?:i(?:n(?:p(?:ut?)?)?)?)?|"input"\s*:?\s*)?)?$/;
const LONGEST_OPENING = 1024;
const LONGEST_ESCAPE = '\\u0000'.length;
/** Characters of a JSON string up to its closing quote or to an escape that is not whole yet; in pieces, since one match over megabytes has no room on the stack. */
const INSIDE = /[^"\\]+|\\u[0-9a-fA-F]{4}|\\u(?=[0-9a-fA-F]{0,3}[^0-9a-fA-F])|\\[^u]/y;
/** The first half of a surrogate pair, spelled or written, at the end. */
const HALF_PAIR = /(?:[\uD800-\uDBFF]|\\u[dD][89abAB][0-9a-fA-F]{2})$/;

/**
 * Arguments that arrive in pieces, as the text inside them: live where they are `{"input": "…"}` or no JSON at all (models
 * also answer with the bare text), at the end where they are another object, of which the only string counts.
 */
export class FreeformReader {
  /** What was said so far. */
  text = '';
  #state: 'opening' | 'inside' | 'closed' | 'bare' | 'waiting' = 'opening';
  #unread = '';

  /** One more piece; gives the text that it adds, perhaps none. */
  push(piece: string): string {
    if (this.#state === 'closed') return '';
    this.#unread += piece;
    if (this.#state === 'opening') this.#open();
    if (this.#state === 'bare') return this.#say(this.#unread.length);
    return this.#state === 'inside' ? this.#read() : '';
  }

  /** Nothing more comes: gives the text that only now is known. */
  end(): string {
    if (this.#state !== 'opening' && this.#state !== 'waiting') return '';
    const fresh = this.#unread.trim() === '' ? '' : onlyString(this.#unread);
    this.text += fresh;
    return fresh;
  }

  /** False while the string around the text is open: more would have come. */
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
      // Hardly more than white space, which every further piece would read again.
      this.#state = 'waiting';
    }
  }

  #read(): string {
    const length = insideOf(this.#unread);
    if (this.#unread[length] === '"') {
      this.#state = 'closed';
      return this.#say(length);
    }
    const end = this.#unread.slice(Math.max(0, length - LONGEST_ESCAPE), length);
    return this.#say(length - (HALF_PAIR.exec(end)?.[0].length ?? 0));
  }

  /** Says that much of what is unread. */
  #say(length: number): string {
    const piece = this.#unread.slice(0, length);
    this.#unread = this.#unread.slice(length);
    const fresh = this.#state === 'bare' ? piece : unescaped(piece);
    this.text += fresh;
    return fresh;
  }
}

function insideOf(text: string): number {
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

/** The text of a JSON string's inside. What models write and JSON forbids (control characters, unknown escapes) counts as itself. */
function unescaped(raw: string): string {
  if (!raw.includes('\\')) return raw;
  const legal = tryJson(`"${raw}"`);
  if (typeof legal === 'string') return legal;
  return raw.replace(/\\(?:u([0-9a-fA-F]{4})|([^u]))/g, (whole, code: string | undefined, character: string | undefined) =>
    code === undefined ? (ESCAPES.get(character ?? '') ?? whole) : String.fromCharCode(Number.parseInt(code, 16)),
  );
}

/** The `input` of an object, or its only string whatever its name (models say `patch`); otherwise the whole text as it is. */
function onlyString(wire: string): string {
  const value = tryJson(wire);
  if (!isObject(value)) return wire;
  const input = value[FREEFORM_INPUT];
  if (typeof input === 'string') return input;
  const members = Object.values(value);
  const [only] = members;
  return members.length === 1 && typeof only === 'string' ? only : wire;
}
