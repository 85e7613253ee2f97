/**
 * Decodes chat-completions chunks into canonical steps. The order is checked first (`lifecycle.ts`), then the content of the
 * chunk is read (`decode-message.ts`). `response.end` is emitted at `[DONE]` or the end of input, because usage may follow the
 * finish chunk.
 */
import { advance, LifecycleError } from '../../../streams/lifecycle.ts';
import { upstreamFault } from '../../canonical/error.ts';
import type { CanonicalEvent, Native, Step } from '../../canonical/event.ts';
import { isObject, type JsonObject } from '../../canonical/json.ts';
import type { DecodeContext, Frame } from '../../codec.ts';
import { defined } from '../../defined.ts';
import { JsonRepeats } from '../../json/repeats.ts';
import { holeAt, holeValue, type JsonShape } from '../../json/shape.ts';
import { RepeatedNative } from '../../json/repeated-native.ts';
import type { JsonPath } from '../../json/text.ts';
import { RunDecoder } from '../../answers/runs.ts';
import { TokenUsageReports } from '../../answers/token-usage.ts';
import { jsonOf } from '../../json/frame.ts';
import { beginsCalls, continuesCall } from './call-pieces.ts';
import { Answer, type PieceMember } from './decode-message.ts';
import { readDetail } from '../details.ts';
import { failureIn } from '../errors.ts';
import { type ContentMember, hasContent, hasOnly, UPSTREAM, type UpstreamState, type UpstreamVerb } from '../lifecycle.ts';
import { finishReason, lastItemStatus, outcomeOf, overrides } from './outcome.ts';
import { checkHasMessage, createdAtOf, DONE, firstChoice, malformed, objectAt, usageIn, nonEmptyString } from '../wire.ts';

const DELTA = ['choices', 0, 'delta'] as const;
/** The members of a delta in which answers arrive piece by piece, and the path of the piece. */
const PIECES = [
  { member: 'content', path: [...DELTA, 'content'] },
  { member: 'reasoning_content', path: [...DELTA, 'reasoning_content'] },
  { member: 'tool_calls', path: [...DELTA, 'tool_calls', 0, 'function', 'arguments'] },
] as const satisfies readonly { readonly member: ContentMember; readonly path: JsonPath }[];
/** The paths whose values differ from chunk to chunk of one stream. */
const VARYING_PATHS = [...PIECES.map(({ path }) => path), ['created'], ['obfuscation']];

/**
 * How a chunk may simply continue the one before it: that was one piece of one member and nothing else, so a chunk of the same
 * shape is one more piece. It is decoded without being parsed, and it changes no state of the order.
 */
interface Continuation {
  readonly shape: JsonShape;
  readonly name: string;
  readonly member: PieceMember;
  /** The hole of the shape that holds the piece. */
  readonly hole: number;
}

type Meta = { -readonly [K in 'id' | 'model' | 'createdAt']?: Extract<CanonicalEvent, { type: 'response.start' }>[K] };

export class ChatDecoder extends RunDecoder {
  ended = false;
  readonly #context: DecodeContext;
  readonly #answer: Answer;
  #state: UpstreamState = 'idle';
  #started = false;
  #meta: Meta = {};
  #serviceTier: string | undefined;
  #finish: string | undefined;
  readonly #reports = new TokenUsageReports();
  readonly #repeats = new JsonRepeats(VARYING_PATHS);
  #continuation: Continuation | undefined;

  constructor(context: DecodeContext) {
    super(context.request.dialect === 'chat');
    this.#context = context;
    this.#answer = new Answer(context, mayCiteLate(context));
  }

  /** A finish reason was seen, so the end of input, or five silent seconds, ends the answer well. */
  get finished(): boolean {
    return this.#state === 'finished' || this.#state === 'called';
  }

  protected pieceOf(frame: Frame): string | undefined {
    const continuation = this.#continuation;
    if (continuation === undefined || (frame.event ?? '') !== continuation.name) return undefined;
    const piece = this.#repeats.valueIn(frame.data, continuation.shape, continuation.hole);
    return piece === undefined ? undefined : String(piece);
  }

  /** The arguments of a call are read piece by piece: some servers begin with a placeholder, or repeat them whole. */
  protected get mayJoin(): boolean {
    return this.#continuation !== undefined && this.#continuation.member !== 'tool_calls';
  }

  protected add(text: string, events: CanonicalEvent[]): void {
    const member = this.#continuation?.member;
    const event = member === undefined ? undefined : this.#answer.continue(member, text);
    if (event !== undefined) events.push(event);
  }

  protected read(frame: Frame, out: Step[]): void {
    const name = frame.event ?? '';
    const continuation = this.#continuation?.name === name ? this.#continuation : undefined;
    const repeat = this.#repeats.match(frame.data);
    if (repeat !== undefined && repeat.shape === continuation?.shape) {
      this.add(String(holeValue(repeat, continuation.hole)), this.events);
      out.push({ native: new RepeatedNative('chat', name, frame.data, repeat), events: this.taken() });
      return;
    }
    const data = frame.data.trim();
    if (data === '') return;
    const events: CanonicalEvent[] = [];
    if (data === DONE) {
      this.#done(events);
      out.push({ native: { dialect: 'chat', name, text: DONE, json: null }, events });
      return;
    }
    this.#continuation = undefined;
    const repeated = repeat === undefined ? undefined : new RepeatedNative('chat', name, frame.data, repeat);
    const chunk = repeated === undefined ? readChunk(frame) : objectAt(repeated.json, 'it is not an object');
    this.#chunk(chunk, frame, events);
    const native = repeated ?? this.#native(name, frame.data, chunk, events);
    out.push({ native, events });
    if (native.repeat !== undefined && this.#state === 'open' && endsInPiece(events))
      this.#continuation = continuationOf(chunk, name, native.repeat.shape);
  }

  /** A chunk that was parsed. The shape of one that holds a piece is learnt, since mostly others like it follow. */
  #native(name: string, text: string, json: JsonObject, events: readonly CanonicalEvent[]): Native {
    const repeat = events.at(-1)?.type === 'item.delta' ? this.#repeats.learn(text, json) : undefined;
    return { dialect: 'chat', name, text, json, ...(repeat === undefined ? {} : { repeat }) };
  }

  end(out: Step[]): void {
    if (this.ended) return;
    if (!this.finished) {
      throw upstreamFault('truncated', 'The upstream ended its stream without a finish reason.');
    }
    const events: CanonicalEvent[] = [];
    this.#done(events);
    out.push({ events });
  }

  endInside(out: Step[]): boolean {
    if (!this.finished) return false;
    this.end(out);
    return true;
  }

  #done(events: CanonicalEvent[]): void {
    if (!this.finished) {
      if (!this.#context.options.acceptDoneWithoutFinish || this.#state === 'idle') {
        throw upstreamFault('truncated', 'The upstream ended its stream without a finish reason.');
      }
      this.#finish = 'stop';
      this.#advance('finish');
    }
    this.#advance('done');
    this.#start(events);
    const outcome = outcomeOf(this.#finish ?? 'stop', this.#answer.hasToolCalls);
    this.#answer.close(lastItemStatus(outcome), events);
    events.push({ type: 'response.end', outcome });
  }

  #chunk(chunk: JsonObject, frame: Frame, events: CanonicalEvent[]): void {
    this.#readMeta(chunk);
    const failure = failureIn(chunk, frame.event, frame.data);
    if (failure !== undefined) {
      this.#advance('fail');
      this.#start(events);
      this.#usage(chunk, events);
      events.push({ type: 'response.end', outcome: { status: 'failed', error: failure } });
      return;
    }
    const choice = firstChoice(chunk)?.choice;
    if (choice !== undefined) this.#choice(choice, events);
    this.#answer.addSources(chunk);
    if (this.finished) this.#answer.flush(events);
    this.#usage(chunk, events);
  }

  #choice(choice: JsonObject, events: CanonicalEvent[]): void {
    checkHasMessage(choice);
    const delta = choice['delta'] === undefined || choice['delta'] === null ? {} : objectAt(choice['delta'], 'delta');
    const reason = finishReason(choice);
    const isContent = hasContent(delta) && !(this.finished && hasOnlyPayloads(delta));
    this.#start(events);
    this.#advance(!isContent ? 'note' : this.#state === 'called' && beginsCalls(delta) ? 'call' : 'content');
    this.#answer.push(delta, choice, 'piece', events);
    const { message } = choice;
    if (message !== undefined && message !== null) this.#answer.complete(objectAt(message, 'message'), choice, events);
    if (reason === undefined) return;
    // An asynchronous filter may refuse an answer after its end (Azure).
    if (overrides(reason, this.#finish)) this.#finish = reason;
    this.#advance(reason === 'tool_calls' ? 'called' : 'finish');
  }

  #usage(chunk: JsonObject, events: CanonicalEvent[]): void {
    const usage = this.#reports.read(usageIn(chunk));
    if (usage === undefined) return;
    this.#start(events);
    const tier = nonEmptyString(chunk['service_tier']) ?? this.#serviceTier;
    const reported = tier === undefined ? usage : { ...usage, serviceTier: tier };
    events.push({ type: 'usage.report', usage: reported, ...(this.#reports.isOutputOlder ? { isOutputOlder: true } : {}) });
  }

  #readMeta(chunk: JsonObject): void {
    if (this.#started && this.#serviceTier !== undefined) return;
    this.#serviceTier ??= nonEmptyString(chunk['service_tier']);
    if (this.#started) return;
    const { id, model } = this.#meta;
    this.#meta = {
      ...this.#meta,
      ...defined({
        id: id ?? nonEmptyString(chunk['id']),
        model: model ?? nonEmptyString(chunk['model']),
        createdAt: createdAtOf(chunk),
      }),
    };
  }

  #start(events: CanonicalEvent[]): void {
    if (this.#started) return;
    this.#started = true;
    const served = this.#serviceTier === undefined ? {} : { served: { serviceTier: this.#serviceTier } };
    events.push({ type: 'response.start', ...this.#meta, ...served });
  }

  #advance(verb: UpstreamVerb): void {
    try {
      this.#state = advance('chat upstream stream', UPSTREAM, this.#state, verb);
      this.ended = this.#state === 'ended';
    } catch (error) {
      if (!(error instanceof LifecycleError)) throw error;
      throw upstreamFault('illegal_lifecycle', `The upstream's stream is out of order (${error.message}).`);
    }
  }
}

/**
 * Whether texts stay open until the end of the stream, where citations mostly arrive. A client of another dialect would notice:
 * for it a text ends when a tool call begins, unless the suffix of the model's name asked the upstream to search. Every other way
 * to ask for a search is a member of a chat request, and chat clients get the stream as it is.
 */
function mayCiteLate({ request, owner }: DecodeContext): boolean {
  return !request.stream || request.dialect === 'chat' || owner.model.endsWith(':online');
}

/** True when the last event is a delta without logprobs. */
function endsInPiece(events: readonly CanonicalEvent[]): boolean {
  const event = events.at(-1);
  return event?.type === 'item.delta' && !(event.delta.kind === 'text' && event.delta.logprobs !== undefined);
}

/** Undefined for a chunk that holds more content than one piece of one member. */
function continuationOf(chunk: JsonObject, name: string, shape: JsonShape): Continuation | undefined {
  const first = firstChoice(chunk);
  const delta = first?.choice['delta'];
  if (first?.at !== 0 || !isObject(delta) || isObject(first.choice['message'])) return undefined;
  const piece = PIECES.find(({ member }) => hasOnly(member, delta));
  const hole = piece === undefined ? -1 : holeAt(shape, piece.path);
  if (piece === undefined || hole === -1 || (piece.member === 'tool_calls' && !continuesCall(delta))) return undefined;
  return { shape, name, member: piece.member, hole };
}

function readChunk(frame: Frame): JsonObject {
  const chunk = jsonOf(frame);
  if (chunk === undefined) throw malformed('it is not JSON');
  return objectAt(chunk, 'it is not an object');
}

/** True for a delta whose only content is opaque payloads: signatures may arrive after the finish reason. */
function hasOnlyPayloads(delta: JsonObject): boolean {
  const { reasoning_details: details, ...rest } = delta;
  return Array.isArray(details) && !hasContent(rest) && details.every((entry) => (readDetail(entry)?.text ?? '') === '');
}
