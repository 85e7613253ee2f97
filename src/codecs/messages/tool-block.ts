/** A client tool's call in an answer, and the text of freeform tools that were lowered to functions. */
import type { CanonicalEvent } from '../canonical/event.ts';
import type { ItemStatus, OutputItem, ToolName } from '../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { Block, BlockHost } from './block.ts';
import { isObjectText, LOWERED_INPUT, malformed, needString, parseObject } from './wire.ts';

/** Argument text is never re-serialised; only its end decides whether it is whole. */
export class ToolBlock implements Block {
  readonly kind = 'tool';
  readonly #host: BlockHost;
  readonly #callId: string;
  readonly #tool: ToolName;
  readonly #flavour: 'function' | 'custom';
  /** A freeform custom tool that was lowered to a function: its text is known only when the JSON around it is whole. */
  readonly #lowered: boolean;
  readonly #seed: string;
  #index = 0;
  #text = '';

  constructor(block: JsonObject, inputText: () => string | undefined, host: BlockHost) {
    this.#host = host;
    this.#callId = needString(block, 'id', 'tool_use block');
    const wireName = needString(block, 'name', 'tool_use block');
    if (this.#callId === '' || wireName === '') throw malformed('tool_use block: id or name is empty');
    const { toolNames, request } = host.context;
    this.#tool = toolNames.fromWire(wireName);
    const custom = request.tools.find((tool) => tool.kind === 'custom' && sameTool(tool.tool, this.#tool));
    this.#flavour = custom === undefined ? 'function' : 'custom';
    this.#lowered = custom?.kind === 'custom' && custom.inputSchema === undefined;
    const input = block['input'];
    if (input !== undefined && input !== null && !isObject(input)) throw malformed('tool_use block: input is not an object');
    this.#seed = isObject(input) ? (inputText() ?? '') : '';
  }

  start(out: CanonicalEvent[]): void {
    this.#index = this.#host.nextIndex();
    const head = { kind: 'toolCall', flavour: this.#flavour, callId: this.#callId, tool: this.#tool } as const;
    out.push({ type: 'item.start', index: this.#index, head });
  }

  delta(delta: JsonObject, out: CanonicalEvent[]): void {
    if (delta['type'] !== 'input_json_delta') return;
    const text = needString(delta, 'partial_json', 'input_json_delta');
    if (text === '') return;
    this.#text += text;
    if (!this.#lowered) this.#say(text, out);
  }

  stop(status: ItemStatus, out: CanonicalEvent[]): boolean {
    if (this.#text === '' && (this.#seed !== '' || status === 'completed')) {
      // A call without arguments has the empty object; one that was cut before them has none.
      this.#text = this.#seed === '' ? '{}' : this.#seed;
      if (!this.#lowered) this.#say(this.#text, out);
    }
    if (!isObjectText(this.#text)) return false;
    const input = this.#lowered ? loweredInput(this.#text) : this.#text;
    if (this.#lowered) this.#say(input, out);
    this.#end(input, status, out);
    return true;
  }

  cut(out: CanonicalEvent[]): void {
    const input = this.#lowered ? partialLoweredInput(this.#text) : this.#text;
    if (this.#lowered) this.#say(input, out);
    this.#end(input, 'incomplete', out);
  }

  #say(text: string, out: CanonicalEvent[]): void {
    if (text !== '') out.push({ type: 'item.delta', index: this.#index, delta: { kind: 'input', text } });
  }

  #end(input: string, status: ItemStatus, out: CanonicalEvent[]): void {
    const item: OutputItem = { kind: 'toolCall', flavour: this.#flavour, callId: this.#callId, tool: this.#tool, input };
    out.push({ type: 'item.end', index: this.#index, item, status });
  }
}

function sameTool(a: ToolName, b: ToolName): boolean {
  return a.name === b.name && a.namespace === b.namespace;
}

/** The freeform text inside `{"input": "…"}`; another object is the model's own idea and passes as its text. */
function loweredInput(text: string): string {
  const value = parseObject(text)?.[LOWERED_INPUT];
  return typeof value === 'string' ? value : text;
}

/** Read piece by piece: one expression over a string of megabytes has no room on the stack. */
const STRING_PIECE = /[^"\\]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

/** As much of the freeform text as a cut `{"input": "…` says, never half an escape. */
function partialLoweredInput(text: string): string {
  const open = /^\s*\{\s*"input"\s*:\s*"/.exec(text);
  if (open === null) return '';
  let end = open[0].length;
  STRING_PIECE.lastIndex = end;
  while (STRING_PIECE.test(text)) end = STRING_PIECE.lastIndex;
  const body = text.slice(open[0].length, end);
  const value: JsonValue = JSON.parse(`"${body.replace(/\p{Cc}/gu, ' ')}"`);
  return String(value);
}
