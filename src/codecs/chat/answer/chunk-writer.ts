/** Writes chunks of a chat stream: the members that all chunks share, the role before anything else, and a fast path for plain text. */
import { escapeJson, type JsonObject } from '../../canonical/json.ts';
import type { Frame, ResponseContext } from '../../codec.ts';

export class ChunkWriter {
  readonly #context: ResponseContext;
  #createdAt: number;
  #hasRole = false;
  /** The JSON that every chunk begins with. */
  #head: string | undefined;
  /** The JSON around every piece of plain text. */
  #textFrame: { readonly head: string; readonly tail: string } | undefined;

  constructor(context: ResponseContext) {
    this.#context = context;
    this.#createdAt = context.createdAt;
  }

  /** The answer has begun with chunks of the upstream itself. */
  markBegun(createdAt: number | undefined): void {
    this.#hasRole = true;
    this.#createdAt = createdAt ?? this.#createdAt;
  }

  /** Writes the role chunk, which is the first of all, unless it was written before. */
  role(out: Frame[]): void {
    if (this.#hasRole) return;
    this.#hasRole = true;
    this.write([{ index: 0, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null }], undefined, out);
  }

  /** Writes a piece of plain text, as most chunks are: only the piece itself is encoded each time. */
  text(text: string, out: Frame[]): void {
    this.role(out);
    this.#textFrame ??= {
      head: `${this.#chunkHead()}[{"index":0,"delta":{"content":"`,
      tail: `"},"logprobs":null,"finish_reason":null}]${this.#chunkTail(undefined)}`,
    };
    const { head, tail } = this.#textFrame;
    out.push({ event: undefined, data: `${head}${escapeJson(text)}${tail}`, oneLine: true });
  }

  delta(delta: JsonObject, out: Frame[], logprobs: JsonObject | null = null): void {
    this.role(out);
    this.write([{ index: 0, delta, logprobs, finish_reason: null }], undefined, out);
  }

  /** The member `usage` is written only for clients that asked for it. */
  write(choices: readonly JsonObject[], usage: JsonObject | undefined, out: Frame[]): void {
    out.push({ event: undefined, data: this.#chunkHead() + JSON.stringify(choices) + this.#chunkTail(usage) });
  }

  #chunkHead(): string {
    const { responseId: id, model } = this.#context;
    this.#head ??= `${JSON.stringify({ id, object: 'chat.completion.chunk', created: this.#createdAt, model }).slice(0, -1)},"choices":`;
    return this.#head;
  }

  #chunkTail(usage: JsonObject | undefined): string {
    if (!this.#context.request.includeUsage) return '}';
    return usage === undefined ? ',"usage":null}' : `,"usage":${JSON.stringify(usage)}}`;
  }
}
