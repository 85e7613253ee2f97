/** Chunks of a chat stream in the gateway's own words: the members that all share, the role before anything else, plain text by a short way. */
import { escapeJson, type JsonObject } from '../canonical/json.ts';
import type { Frame, ResponseContext } from '../codec.ts';

export class ChunkWriter {
  readonly #context: ResponseContext;
  #createdAt: number;
  #hasRole = false;
  /** The members that every chunk begins with. */
  #head: string | undefined;
  /** What stands around every piece of plain text. */
  #textEnds: { readonly head: string; readonly tail: string } | undefined;

  constructor(context: ResponseContext) {
    this.#context = context;
    this.#createdAt = context.createdAt;
  }

  /** Chunks of the upstream's own have begun the answer. */
  begun(createdAt: number | undefined): void {
    this.#hasRole = true;
    this.#createdAt = createdAt ?? this.#createdAt;
  }

  /** Once, before all others. */
  role(out: Frame[]): void {
    if (this.#hasRole) return;
    this.#hasRole = true;
    this.write([{ index: 0, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null }], undefined, out);
  }

  /** A piece of plain text, which is most of what a stream says: only the piece is written anew. */
  text(text: string, out: Frame[]): void {
    this.role(out);
    this.#textEnds ??= {
      head: `${this.#chunkHead()}[{"index":0,"delta":{"content":"`,
      tail: `"},"logprobs":null,"finish_reason":null}]${this.#chunkTail(undefined)}`,
    };
    const { head, tail } = this.#textEnds;
    out.push({ event: undefined, data: `${head}${escapeJson(text)}${tail}`, oneLine: true });
  }

  delta(delta: JsonObject, out: Frame[], logprobs: JsonObject | null = null): void {
    this.role(out);
    this.write([{ index: 0, delta, logprobs, finish_reason: null }], undefined, out);
  }

  /** `usage` is said to those alone who asked for it. */
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
