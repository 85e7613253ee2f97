/** A call of a client's tool in an answer. Its argument text is never re-serialised; whether it is whole JSON is checked at its end. */
import { grown } from '../../canonical/grown.ts';
import type { CanonicalEvent } from '../../canonical/event.ts';
import type { ItemStatus, OutputItem, ToolName } from '../../canonical/item.ts';
import { isObject, isObjectText, type JsonObject } from '../../canonical/json.ts';
import { customToolOf, FreeformReader } from '../../tools/freeform.ts';
import type { Block, BlockHost } from './block.ts';
import { malformed, needString } from '../wire.ts';

export class ToolBlock implements Block {
  readonly kind = 'tool';
  readonly #host: BlockHost;
  readonly #callId: string;
  readonly #tool: ToolName;
  readonly #flavour: 'function' | 'custom';
  /** For a freeform custom tool that was sent as a function: unwraps its text. */
  readonly #freeform: FreeformReader | undefined;
  readonly #initialInput: string;
  #index = 0;
  #text = '';

  constructor(block: JsonObject, inputText: () => string | undefined, host: BlockHost) {
    this.#host = host;
    this.#callId = needString(block, 'id', 'tool_use block');
    const wireName = needString(block, 'name', 'tool_use block');
    if (this.#callId === '' || wireName === '') throw malformed('tool_use block: id or name is empty');
    const { toolNames, request } = host.context;
    this.#tool = toolNames.fromWire(wireName);
    const custom = customToolOf(request.tools, this.#tool);
    this.#flavour = custom === undefined ? 'function' : 'custom';
    this.#freeform = custom !== undefined && custom.inputSchema === undefined ? new FreeformReader() : undefined;
    const input = block['input'];
    if (input !== undefined && input !== null && !isObject(input)) throw malformed('tool_use block: input is not an object');
    this.#initialInput = isObject(input) ? (inputText() ?? '') : '';
  }

  get hasNoInput(): boolean {
    return this.#text.trim() === '' && this.#initialInput === '';
  }

  start(out: CanonicalEvent[]): void {
    this.#index = this.#host.nextIndex();
    const head = { kind: 'toolCall', flavour: this.#flavour, callId: this.#callId, tool: this.#tool } as const;
    out.push({ type: 'item.start', index: this.#index, head });
  }

  delta(delta: JsonObject, out: CanonicalEvent[]): void {
    if (delta['type'] === 'input_json_delta') this.append(needString(delta, 'partial_json', 'input_json_delta'), out);
  }

  stop(status: ItemStatus, out: CanonicalEvent[]): boolean {
    // A completed call without input has the empty object; one that was cut before its input has none.
    if (this.#text.trim() === '') this.append(this.hasNoInput && status === 'completed' ? '{}' : this.#initialInput, out);
    if (!isObjectText(this.#text)) return false;
    if (this.#freeform !== undefined) this.#emit(this.#freeform.end(), out);
    this.#end(status, out);
    return true;
  }

  cut(out: CanonicalEvent[]): void {
    this.#end('incomplete', out);
  }

  append(text: string, out: CanonicalEvent[]): void {
    this.#text = grown(this.#text, text);
    this.#emit(this.#freeform === undefined ? text : this.#freeform.push(text), out);
  }

  #emit(text: string, out: CanonicalEvent[]): void {
    if (text !== '') out.push({ type: 'item.delta', index: this.#index, delta: { kind: 'input', text } });
  }

  #end(status: ItemStatus, out: CanonicalEvent[]): void {
    const input = this.#freeform?.text ?? this.#text;
    const item: OutputItem = { kind: 'toolCall', flavour: this.#flavour, callId: this.#callId, tool: this.#tool, input };
    out.push({ type: 'item.end', index: this.#index, item, status });
  }
}
