/** Where the pieces of a message are written to: chunks of a stream, or the message of a whole body. */
import { append } from '../../append.ts';
import { escapeJson, isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { Growth } from '../../canonical/event.ts';
import type { OutFrame, ResponseContext } from '../../codec.ts';

export interface DeltaSink {
  /** A piece of plain text, as most pieces are, or several. */
  text(said: Growth): void;
  /** The members that one piece brings. */
  delta(delta: JsonObject, logprobs?: JsonObject): void;
}

/** Writes chunks: the members that all of them share, the role before anything else, and a fast path for plain text. */
export class ChunkSink implements DeltaSink {
  /** The batch of the current call. */
  out: OutFrame[] = [];
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
  role(): void {
    if (this.#hasRole) return;
    this.#hasRole = true;
    this.write([{ index: 0, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null }]);
  }

  /** Only the piece itself is encoded each time. */
  text({ text, pieces }: Growth): void {
    this.role();
    this.#textFrame ??= {
      head: `${this.#chunkHead()}[{"index":0,"delta":{"content":"`,
      tail: `"},"logprobs":null,"finish_reason":null}]${this.#chunkTail(undefined)}`,
    };
    const { head, tail } = this.#textFrame;
    if (pieces === undefined) this.out.push({ event: undefined, data: `${head}${escapeJson(text)}${tail}`, oneLine: true });
    else this.out.push({ event: undefined, head, pieces: pieces.map(escapeJson), tail });
  }

  delta(delta: JsonObject, logprobs: JsonObject | null = null): void {
    this.role();
    this.write([{ index: 0, delta, logprobs, finish_reason: null }]);
  }

  /** The member `usage` is written only for clients that asked for it. */
  write(choices: readonly JsonObject[], usage?: JsonObject): void {
    this.out.push({ event: undefined, data: this.#chunkHead() + JSON.stringify(choices) + this.#chunkTail(usage) });
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

/** Merges the pieces as clients do: texts are joined, entries of lists by their index. */
export class MessageSink implements DeltaSink {
  readonly message: Record<string, JsonValue | undefined> = {};
  readonly logprobs: JsonValue[] = [];

  text({ text }: Growth): void {
    this.delta({ content: text });
  }

  delta(delta: JsonObject, logprobs?: JsonObject): void {
    merge(this.message, delta);
    const tokens = logprobs?.['content'];
    if (Array.isArray(tokens)) append(this.logprobs, tokens);
  }
}

/** The members whose pieces are joined. Any other member of a later piece repeats what is known. */
const GROWING: ReadonlySet<string> = new Set([
  ...['content', 'refusal', 'reasoning', 'reasoning_content'],
  ...['arguments', 'input', 'summary'],
]);

type Growing = Record<string, JsonValue | undefined>;

function merge(known: Growing, piece: JsonObject): void {
  for (const [name, value] of Object.entries(piece)) {
    const before = known[name];
    if (typeof value === 'string' && GROWING.has(name)) known[name] = `${before ?? ''}${value}`;
    else if (Array.isArray(value)) known[name] = mergeEntries(Array.isArray(before) ? before : [], value);
    else if (isObject(value) && isObject(before)) merge(before, value);
    else known[name] = value;
  }
}

/** Items are written one after another, so a piece goes on with the last entry or begins another. */
function mergeEntries(known: JsonValue[], pieces: readonly JsonValue[]): JsonValue[] {
  for (const piece of pieces) {
    const last = known.at(-1);
    const isOfLast =
      isObject(piece) && isObject(last) && piece['index'] === last['index'] && (piece['type'] ?? last['type']) === last['type'];
    if (isOfLast) merge(last, piece);
    else known.push(piece);
  }
  return known;
}
