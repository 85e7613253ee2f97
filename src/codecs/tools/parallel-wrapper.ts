/**
 * Some models call an internal wrapper that nobody declared, a function `parallel` with the real calls in its arguments
 * (`{"tool_uses": [{"recipient_name": "functions.x", "parameters": {…}}]}`). If every recipient is a declared tool, the calls
 * replace the wrapper; otherwise it stays as it is. Answers for a client of the same dialect are not changed.
 */
import { append } from '../append.ts';
import type { CanonicalEvent, ItemEvent, Step } from '../canonical/event.ts';
import type { ItemStatus, OutputItem, ToolCallItem } from '../canonical/item.ts';
import { isObject, type JsonValue, tryJson } from '../canonical/json.ts';
import type { SentRequest, Tool } from '../canonical/request.ts';
import type { Dialect } from '../canonical/dialect.ts';
import { RewritingDecoder, type Rewriter } from '../answers/rewriting-decoder.ts';
import { unfold } from '../canonical/item-emitter.ts';
import type { DecodeContext, EventDecoder } from '../codec.ts';
import { jsonSlicer } from '../json/text.ts';
import { declaredTool } from './names.ts';

const WRAPPERS: ReadonlySet<string> = new Set(['parallel', 'multi_tool_use.parallel', 'multi_tool_use_parallel']);
const RECIPIENT = /^(?:functions\.)?(.+)$/;

/** The decoder, wrapped in one that expands wrapper calls if this answer may hold any. `dialect` is the upstream's. */
export function expandingDecoder(decoder: EventDecoder, dialect: Dialect, context: DecodeContext): EventDecoder {
  return mayHold(context.request, dialect) ? new RewritingDecoder(decoder, new Expansion(context)) : decoder;
}

/** The same for a whole answer. */
export function expandedStep(step: Step, dialect: Dialect, context: DecodeContext): Step {
  return mayHold(context.request, dialect) ? new Expansion(context).step(step) : step;
}

function mayHold(request: SentRequest, dialect: Dialect): boolean {
  if (request.dialect === dialect || request.tools.length === 0) return false;
  return !request.tools.some((tool) => tool.kind !== 'native' && WRAPPERS.has(tool.tool.name));
}

/** Expands the wrapper calls of one answer. Once one was held back, the items of the answer get new indices. */
class Expansion implements Rewriter {
  readonly #context: DecodeContext;
  /** The events of open wrapper calls, by the decoder's index. */
  readonly #held = new Map<number, ItemEvent[]>();
  /** The new index of each item, by the decoder's index. */
  readonly #indices = new Map<number, number>();
  /** The usage that was reported while a call was held back. */
  #heldReport: CanonicalEvent | undefined;
  #nextIndex = 0;
  /** A wrapper call was seen. */
  #isActive = false;

  constructor(context: DecodeContext) {
    this.#context = context;
  }

  step(step: Step): Step {
    if (!this.#isActive && !step.events.some(isWrapper)) {
      for (const event of step.events) if (event.type === 'item.start') this.#nextIndex = event.index + 1;
      return step;
    }
    if (!this.#isActive) for (let index = 0; index < this.#nextIndex; index += 1) this.#indices.set(index, index);
    this.#isActive = true;
    const events: CanonicalEvent[] = [];
    for (const event of step.events) this.#push(event, events);
    return { events };
  }

  #push(event: CanonicalEvent, out: CanonicalEvent[]): void {
    if (event.type === 'response.end') this.#release(out);
    if (!('index' in event)) {
      out.push(event);
      if (event.type === 'usage.report' && this.#held.size > 0) this.#heldReport = event;
    } else if (isWrapper(event)) {
      this.#held.set(event.index, [event]);
    } else {
      const held = this.#held.get(event.index);
      if (held === undefined) this.#emit(event, out);
      else if (event.type === 'item.end') this.#expand(event.item, event.status, [...held, event], out);
      else held.push(event);
    }
  }

  #expand(item: OutputItem, status: ItemStatus, held: readonly ItemEvent[], out: CanonicalEvent[]): void {
    const index = held[0]?.index ?? 0;
    this.#held.delete(index);
    const calls = item.kind === 'toolCall' ? this.#callsIn(item) : undefined;
    for (const event of calls === undefined ? held : []) this.#emit(event, out);
    for (const call of calls ?? []) append(out, unfold(this.#nextIndex++, { item: call, status }));
    this.#repeatReport(out);
  }

  /** The answer ends while a wrapper is open: its events are emitted as they are. */
  #release(out: CanonicalEvent[]): void {
    for (const held of this.#held.values()) for (const event of held) this.#emit(event, out);
    this.#held.clear();
    this.#repeatReport(out);
  }

  /** Repeats the usage after the items that it counts: a report before the first item counts as a placeholder. */
  #repeatReport(out: CanonicalEvent[]): void {
    if (this.#heldReport !== undefined) out.push(this.#heldReport);
    this.#heldReport = undefined;
  }

  #emit(event: ItemEvent, out: CanonicalEvent[]): void {
    if (event.type === 'item.start') this.#indices.set(event.index, this.#nextIndex++);
    out.push({ ...event, index: this.#indices.get(event.index) ?? event.index });
  }

  /** The calls inside; undefined if a recipient is unknown. The first call gets the wrapper's signature. */
  #callsIn(wrapper: ToolCallItem): ToolCallItem[] | undefined {
    const uses = usesIn(wrapper.input);
    if (uses === undefined || uses.length === 0) return undefined;
    const slice = jsonSlicer(wrapper.input);
    const calls: ToolCallItem[] = [];
    for (const [at, use] of uses.entries()) {
      const tool = isObject(use) ? this.#recipient(use['recipient_name']) : undefined;
      const input = slice(['tool_uses', at, 'parameters']);
      if (!isObject(use) || tool === undefined || input === undefined || !isObject(use['parameters'])) return undefined;
      const opaque = at === 0 && wrapper.opaque !== undefined ? { opaque: wrapper.opaque } : {};
      const callId = this.#context.mint('call_');
      calls.push({ kind: 'toolCall', toolType: tool.kind, callId, tool: tool.tool, input, ...opaque });
    }
    return calls;
  }

  #recipient(value: JsonValue | undefined): Exclude<Tool, { kind: 'native' }> | undefined {
    const name = typeof value === 'string' ? RECIPIENT.exec(value)?.[1] : undefined;
    if (name === undefined) return undefined;
    const tool = declaredTool(this.#context.request.tools, this.#context.toolNames.fromWire(name));
    // The parameters here are an object, which a freeform tool does not take.
    return tool?.kind === 'custom' && tool.inputSchema === undefined ? undefined : tool;
  }
}

function isWrapper(event: CanonicalEvent): boolean {
  if (event.type !== 'item.start' || event.head.kind !== 'toolCall') return false;
  return event.head.toolType === 'function' && WRAPPERS.has(event.head.tool.name);
}

function usesIn(input: string): readonly JsonValue[] | undefined {
  const value = tryJson(input);
  const uses = isObject(value) ? value['tool_uses'] : undefined;
  return Array.isArray(uses) ? uses : undefined;
}
