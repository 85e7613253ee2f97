/**
 * Reads the parts of an upstream's answer: its start, its blocks, its usage, its end. The decoders of streams and of whole bodies
 * share it, so that the two cannot differ.
 */
import type { CanonicalEvent } from '../../canonical/event.ts';
import type { ItemStatus } from '../../canonical/item.ts';
import { ItemEmitter } from '../../canonical/item-emitter.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { DecodeContext } from '../../codec.ts';
import { defined } from '../../defined.ts';
import type { Block, BlockHost } from './block.ts';
import { openBlock } from './decode-blocks.ts';
import { decodeStop, type WireStop } from './outcome.ts';
import { servedBeforeCounts, UsageReader } from './usage.ts';
import { inputRefused, malformed, nullableString } from '../wire.ts';

export class AnswerReader implements BlockHost {
  readonly context: DecodeContext;
  readonly items = new ItemEmitter();
  readonly #usage = new UsageReader();
  #calledTool = false;

  constructor(context: DecodeContext) {
    this.context = context;
  }

  serverToolCalled(name: string): void {
    this.#usage.called(name);
  }

  /** `message` is a whole message, or that of message_start; `where` names it in errors. */
  start(message: JsonObject, where: string, out: CanonicalEvent[]): void {
    const id = nullableString(message, 'id', where);
    const model = nullableString(message, 'model', where);
    const served = isObject(message['usage']) ? servedBeforeCounts(message['usage']) : undefined;
    out.push({ type: 'response.start', ...defined({ id, model, served }) });
  }

  /** Begins a block. `inputText`: see {@link openBlock}. */
  open(content: JsonObject, inputText: () => string | undefined, out: CanonicalEvent[]): Block {
    const block = openBlock(content, inputText, this, out);
    this.#calledTool ||= block.kind === 'tool';
    return block;
  }

  /** A block that arrived at once. Throws GatewayError blaming the upstream. */
  readBlock(json: JsonValue, status: ItemStatus, inputText: () => string | undefined, out: CanonicalEvent[]): void {
    if (!isObject(json)) throw malformed('a content block is not an object');
    if (!this.open(json, inputText, out).stop(status, out)) throw inputRefused();
  }

  /** `isStart`: of a stream that has only begun. */
  readUsage(report: JsonValue, isStart: boolean, out: CanonicalEvent[]): void {
    if (!isObject(report)) throw malformed('usage is not an object');
    const usage = this.#usage.read(report, isStart);
    if (usage === undefined) return;
    out.push({ type: 'usage.report', usage, ...(this.#usage.isOutputOlder ? { isOutputOlder: true } : {}) });
  }

  end(stop: WireStop, out: CanonicalEvent[]): void {
    // An upstream that reports no usage behind them ran them all the same.
    if (this.#usage.hasUnreadCalls) this.readUsage({}, false, out);
    out.push({ type: 'response.end', outcome: decodeStop(stop, this.#calledTool) });
  }
}
