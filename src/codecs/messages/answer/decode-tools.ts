/**
 * A call of a client's tool in an answer. Its argument text is never re-serialised; whether it is whole JSON is checked at its
 * end.
 */
import { NO_ARGUMENTS } from '../../tools/arguments.ts';
import type { CanonicalEvent } from '../../canonical/event.ts';
import type { OpenItem } from '../../canonical/fold.ts';
import { grown } from '../../canonical/grown.ts';
import type { ItemStatus } from '../../canonical/item.ts';
import type { ItemEmitter } from '../../canonical/item-emitter.ts';
import { isObject, isObjectText, type JsonObject } from '../../canonical/json.ts';
import { customToolOf, FreeformReader } from '../../tools/freeform.ts';
import type { Block, BlockHost } from './block.ts';
import { malformed, needString } from '../wire.ts';

export class ToolBlock implements Block {
  readonly kind = 'tool';
  readonly #items: ItemEmitter;
  readonly #item: OpenItem;
  /** For a freeform custom tool that was sent as a function: unwraps its text. */
  readonly #freeform: FreeformReader | undefined;
  readonly #initialInput: string;
  /** The arguments of a freeform tool as they came. */
  #wrapped = '';

  constructor(block: JsonObject, inputText: () => string | undefined, { context, items }: BlockHost, out: CanonicalEvent[]) {
    const callId = needString(block, 'id', 'tool_use block');
    const wireName = needString(block, 'name', 'tool_use block');
    if (callId === '' || wireName === '') throw malformed('tool_use block: id or name is empty');
    const { toolNames, request } = context;
    const tool = toolNames.fromWire(wireName);
    const custom = customToolOf(request.tools, tool);
    this.#freeform = custom !== undefined && custom.inputSchema === undefined ? new FreeformReader() : undefined;
    const input = block['input'];
    if (input !== undefined && input !== null && !isObject(input)) throw malformed('tool_use block: input is not an object');
    this.#initialInput = isObject(input) ? (inputText() ?? '') : '';
    const toolType = custom === undefined ? 'function' : 'custom';
    this.#items = items;
    this.#item = items.start({ kind: 'toolCall', toolType, callId, tool }, out);
  }

  /** The arguments as they came in deltas. */
  get #text(): string {
    return this.#freeform === undefined ? this.#item.text : this.#wrapped;
  }

  get rewrites(): boolean {
    return this.#freeform !== undefined;
  }

  get hasNoInput(): boolean {
    return this.#text.trim() === '' && this.#initialInput === '';
  }

  delta(delta: JsonObject, out: CanonicalEvent[]): void {
    if (delta['type'] === 'input_json_delta') this.append(needString(delta, 'partial_json', 'input_json_delta'), out);
  }

  stop(status: ItemStatus, out: CanonicalEvent[]): boolean {
    // A completed call without input has the empty object; one that was cut before its input has none.
    if (this.#text.trim() === '') this.append(this.hasNoInput && status === 'completed' ? NO_ARGUMENTS : this.#initialInput, out);
    if (!isObjectText(this.#text)) return false;
    if (this.#freeform !== undefined) this.#emit(this.#freeform.end(), out);
    this.#items.end(this.#item, status, out);
    return true;
  }

  cut(out: CanonicalEvent[]): void {
    this.#items.end(this.#item, 'incomplete', out);
  }

  append(text: string, out: CanonicalEvent[]): void {
    if (this.#freeform !== undefined) this.#wrapped = grown(this.#wrapped, text);
    this.#emit(this.#freeform === undefined ? text : this.#freeform.push(text), out);
  }

  #emit(text: string, out: CanonicalEvent[]): void {
    if (text !== '') this.#items.delta(this.#item, { kind: 'input', text }, out);
  }
}
