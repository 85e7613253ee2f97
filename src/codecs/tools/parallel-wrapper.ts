/**
 * Some models call their own internal wrapper, a function `parallel` nobody declared, with the real calls in its arguments
 * (`{"tool_uses": [{"recipient_name": "functions.x", "parameters": {…}}]}`). Where every recipient is a declared tool the calls
 * take the wrapper's place; otherwise it passes as it came. Within one dialect nothing is changed.
 */
import type { CanonicalEvent, Step } from '../canonical/event.ts';
import type { ItemStatus, OutputItem, ToolCallItem } from '../canonical/item.ts';
import { isObject, type JsonValue, tryJson } from '../canonical/json.ts';
import type { SentRequest, Tool } from '../canonical/request.ts';
import type { Dialect } from '../canonical/dialect.ts';
import type { DecodeContext, EventDecoder, Frame } from '../codec.ts';
import { jsonSlicer } from '../json/text.ts';
import { sameTool } from './names.ts';

const WRAPPERS: ReadonlySet<string> = new Set(['parallel', 'multi_tool_use.parallel', 'multi_tool_use_parallel']);
const RECIPIENT = /^(?:functions\.)?(.+)$/;

/** The decoder, or around it one that expands wrapper calls where this answer may hold them. `dialect` is the upstream's. */
export function expandingDecoder(decoder: EventDecoder, dialect: Dialect, context: DecodeContext): EventDecoder {
  return mayHold(context.request, dialect) ? new ExpandingDecoder(decoder, context) : decoder;
}

/** The same for a whole answer. */
export function expandedStep(step: Step, dialect: Dialect, context: DecodeContext): Step {
  return mayHold(context.request, dialect) ? new Expansion(context).step(step) : step;
}

function mayHold(request: SentRequest, dialect: Dialect): boolean {
  if (request.dialect === dialect || request.tools.length === 0) return false;
  return !request.tools.some((tool) => tool.kind !== 'native' && WRAPPERS.has(tool.tool.name));
}

class ExpandingDecoder implements EventDecoder {
  readonly #decoder: EventDecoder;
  readonly #expansion: Expansion;

  constructor(decoder: EventDecoder, context: DecodeContext) {
    this.#decoder = decoder;
    this.#expansion = new Expansion(context);
  }

  get ended(): boolean {
    return this.#decoder.ended;
  }

  get finished(): boolean {
    return this.#decoder.finished === true;
  }

  push(frame: Frame, out: Step[]): void {
    const from = out.length;
    try {
      this.#decoder.push(frame, out);
    } finally {
      this.#replace(out, from);
    }
  }

  end(out: Step[]): void {
    const from = out.length;
    this.#decoder.end(out);
    this.#replace(out, from);
  }

  #replace(out: Step[], from: number): void {
    for (let at = from; at < out.length; at += 1) {
      const step = out[at];
      if (step !== undefined) out[at] = this.#expansion.step(step);
    }
  }
}

type ItemEvent = Extract<CanonicalEvent, { readonly index: number }>;

/** Follows the items of one answer; their indices are counted anew once a wrapper was held back. */
class Expansion {
  readonly #context: DecodeContext;
  /** What wrapper calls that are still open have said, by the decoder's index. */
  readonly #held = new Map<number, ItemEvent[]>();
  readonly #indices = new Map<number, number>();
  /** What was reported while a call was held back. */
  #reported: CanonicalEvent | undefined;
  #next = 0;
  #isActive = false;

  constructor(context: DecodeContext) {
    this.#context = context;
  }

  step(step: Step): Step {
    if (!this.#isActive && !step.events.some(isWrapper)) {
      for (const event of step.events) if (event.type === 'item.start') this.#next = event.index + 1;
      return step;
    }
    if (!this.#isActive) for (let index = 0; index < this.#next; index += 1) this.#indices.set(index, index);
    this.#isActive = true;
    const events: CanonicalEvent[] = [];
    for (const event of step.events) this.#push(event, events);
    return { events };
  }

  #push(event: CanonicalEvent, out: CanonicalEvent[]): void {
    if (event.type === 'response.end') this.#release(out);
    if (!('index' in event)) {
      out.push(event);
      if (event.type === 'usage.report' && this.#held.size > 0) this.#reported = event;
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
    for (const call of calls ?? []) {
      const { flavour, callId, tool, input } = call;
      const index = this.#next++;
      out.push({ type: 'item.start', index, head: { kind: 'toolCall', flavour, callId, tool } });
      out.push({ type: 'item.delta', index, delta: { kind: 'input', text: input } });
      out.push({ type: 'item.end', index, item: call, status });
    }
    this.#repeatReport(out);
  }

  /** The answer is over while a wrapper is open: what it said stays. */
  #release(out: CanonicalEvent[]): void {
    for (const held of this.#held.values()) for (const event of held) this.#emit(event, out);
    this.#held.clear();
    this.#repeatReport(out);
  }

  /** Once more behind what it counts: a report before the first item would be read as a placeholder. */
  #repeatReport(out: CanonicalEvent[]): void {
    if (this.#reported !== undefined) out.push(this.#reported);
    this.#reported = undefined;
  }

  #emit(event: ItemEvent, out: CanonicalEvent[]): void {
    if (event.type === 'item.start') this.#indices.set(event.index, this.#next++);
    out.push({ ...event, index: this.#indices.get(event.index) ?? event.index });
  }

  /** The calls inside, or undefined where one of them is to nobody. A signature of the wrapper is the first call's. */
  #callsIn(wrapper: ToolCallItem): ToolCallItem[] | undefined {
    const uses = usesIn(wrapper.input);
    if (uses === undefined || uses.length === 0) return undefined;
    const spelling = jsonSlicer(wrapper.input);
    const calls: ToolCallItem[] = [];
    for (const [at, use] of uses.entries()) {
      const tool = isObject(use) ? this.#recipient(use['recipient_name']) : undefined;
      const input = spelling(['tool_uses', at, 'parameters']);
      if (!isObject(use) || tool === undefined || input === undefined || !isObject(use['parameters'])) return undefined;
      const opaque = at === 0 && wrapper.opaque !== undefined ? { opaque: wrapper.opaque } : {};
      const callId = this.#context.mint('call_');
      calls.push({ kind: 'toolCall', flavour: tool.kind, callId, tool: tool.tool, input, ...opaque });
    }
    return calls;
  }

  #recipient(value: JsonValue | undefined): Exclude<Tool, { kind: 'native' }> | undefined {
    const name = typeof value === 'string' ? RECIPIENT.exec(value)?.[1] : undefined;
    if (name === undefined) return undefined;
    const wanted = this.#context.toolNames.fromWire(name);
    for (const tool of this.#context.request.tools) {
      // A freeform text is no object of parameters.
      if (tool.kind === 'native' || (tool.kind === 'custom' && tool.inputSchema === undefined)) continue;
      if (sameTool(tool.tool, wanted)) return tool;
    }
    return undefined;
  }
}

function isWrapper(event: CanonicalEvent): boolean {
  if (event.type !== 'item.start' || event.head.kind !== 'toolCall') return false;
  return event.head.flavour === 'function' && WRAPPERS.has(event.head.tool.name);
}

function usesIn(input: string): readonly JsonValue[] | undefined {
  const value = tryJson(input);
  const uses = isObject(value) ? value['tool_uses'] : undefined;
  return Array.isArray(uses) ? uses : undefined;
}
