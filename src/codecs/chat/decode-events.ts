/**
 * Chat-completions chunks into canonical steps. The order is checked first (`lifecycle.ts`), then the chunk's meaning is
 * read (`answer.ts`). `response.end` waits for `[DONE]` or the end of input, because usage may follow the finish chunk.
 */
import { advance, LifecycleError } from '../../streams/lifecycle.ts';
import type { Stage } from '../../streams/stage.ts';
import { upstreamFault } from '../canonical/error.ts';
import type { CanonicalEvent, Native, Step } from '../canonical/event.ts';
import { isObject, type JsonObject, tryJson } from '../canonical/json.ts';
import type { DecodeContext, Frame } from '../codec.ts';
import { defined } from '../defined.ts';
import { JsonRepeats } from '../json/repeats.ts';
import { holeAt, holeValue, type JsonShape } from '../json/shape.ts';
import { RepeatedNative } from '../json/repeated-native.ts';
import type { JsonPath } from '../json/text.ts';
import { laterReport, readTokenUsage } from '../answers/token-usage.ts';
import { beginsCalls, goesOn } from './tool-pieces.ts';
import { Answer, type PieceMember } from './answer.ts';
import { readDetail } from './details.ts';
import { failureIn } from './errors.ts';
import { type ContentMember, saysOnly, saysSomething, UPSTREAM, type UpstreamState, type UpstreamVerb } from './lifecycle.ts';
import { finishReason, lastItemStatus, outcomeOf, outweighs } from './outcome.ts';
import { DONE, firstChoice, malformed, object, usageIn, word } from './wire.ts';

const DELTA = ['choices', 0, 'delta'] as const;
/** The members of a delta that answers are said in, piece by piece, and where the piece is. */
const PIECES = [
  { member: 'content', path: [...DELTA, 'content'] },
  { member: 'reasoning_content', path: [...DELTA, 'reasoning_content'] },
  { member: 'tool_calls', path: [...DELTA, 'tool_calls', 0, 'function', 'arguments'] },
] as const satisfies readonly { readonly member: ContentMember; readonly path: JsonPath }[];
/** What differs between two chunks of one stream. */
const VARIES = [...PIECES.map(({ path }) => path), ['created'], ['obfuscation']];

/** The chunk before, when that was a piece of one thing and nothing else: the next of its shape moves no table. */
interface Plain {
  readonly shape: JsonShape;
  readonly name: string;
  readonly member: PieceMember;
  /** Which hole of its shape holds the piece. */
  readonly hole: number;
}

type Meta = { -readonly [K in 'id' | 'model' | 'createdAt']?: Extract<CanonicalEvent, { type: 'response.start' }>[K] };

export class ChatDecoder implements Stage<Frame, Step> {
  ended = false;
  readonly #context: DecodeContext;
  readonly #answer: Answer;
  #state: UpstreamState = 'idle';
  #started = false;
  #meta: Meta = {};
  #serviceTier: string | undefined;
  #finish: string | undefined;
  /** Usage as the upstream has said it so far. */
  #reported: JsonObject | undefined;
  readonly #repeats = new JsonRepeats(VARIES);
  #plain: Plain | undefined;

  constructor(context: DecodeContext) {
    this.#context = context;
    this.#answer = new Answer(context, awaitsCitations(context));
  }

  /** A finish reason was seen: the end of input, or five silent seconds, is a good ending now. */
  get finished(): boolean {
    return this.#state === 'finished' || this.#state === 'called';
  }

  push(frame: Frame, out: Step[]): void {
    if (this.ended) return;
    const name = frame.event ?? '';
    const repeat = this.#repeats.match(frame.data);
    const plain = this.#plain;
    if (repeat !== undefined && repeat.shape === plain?.shape && name === plain.name) {
      const said = this.#answer.continue(plain.member, String(holeValue(repeat, plain.hole)));
      out.push({ native: new RepeatedNative('chat', name, frame.data, repeat), events: said === undefined ? [] : [said] });
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
    this.#plain = undefined;
    const known = repeat === undefined ? undefined : new RepeatedNative('chat', name, frame.data, repeat);
    const chunk = known === undefined ? readChunk(frame.data) : object(known.json, 'it is not an object');
    this.#chunk(chunk, frame, events);
    const native = known ?? this.#native(name, frame.data, chunk, events);
    out.push({ native, events });
    if (native.repeat !== undefined && this.#state === 'open' && endsInPiece(events))
      this.#plain = plainOf(chunk, name, native.repeat.shape);
  }

  /** A chunk that was parsed. One that says a piece of something is mostly followed by others like it. */
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

  #done(events: CanonicalEvent[]): void {
    if (!this.finished) {
      if (!this.#context.options.acceptDoneWithoutFinish || this.#state === 'idle') {
        throw upstreamFault('truncated', 'The upstream ended its stream without a finish reason.');
      }
      this.#finish = 'stop';
      this.#move('finish');
    }
    this.#move('done');
    this.#start(events);
    const outcome = outcomeOf(this.#finish ?? 'stop', this.#answer.hasToolCalls);
    this.#answer.close(lastItemStatus(outcome), events);
    events.push({ type: 'response.end', outcome });
  }

  #chunk(chunk: JsonObject, frame: Frame, events: CanonicalEvent[]): void {
    this.#remember(chunk);
    const failure = failureIn(chunk, frame.event, frame.data);
    if (failure !== undefined) {
      this.#move('fail');
      this.#start(events);
      this.#usage(chunk, events);
      events.push({ type: 'response.end', outcome: { status: 'failed', error: failure } });
      return;
    }
    const choice = firstChoice(chunk)?.choice;
    if (choice !== undefined) this.#choice(choice, events);
    this.#answer.citeSources(chunk);
    if (this.finished) this.#answer.settle(events);
    this.#usage(chunk, events);
  }

  #choice(choice: JsonObject, events: CanonicalEvent[]): void {
    const delta = choice['delta'] === undefined || choice['delta'] === null ? {} : object(choice['delta'], 'delta');
    const reason = finishReason(choice);
    const speaks = saysSomething(delta) && !(this.finished && saysPayloadOnly(delta));
    this.#start(events);
    this.#move(!speaks ? 'note' : this.#state === 'called' && beginsCalls(delta) ? 'call' : 'content');
    this.#answer.push(delta, choice, 'piece', events);
    const { message } = choice;
    if (message !== undefined && message !== null) this.#answer.complete(object(message, 'message'), choice, events);
    if (reason === undefined) return;
    // An asynchronous filter may find fault with an answer after its end (Azure).
    if (outweighs(reason, this.#finish)) this.#finish = reason;
    this.#move(reason === 'tool_calls' ? 'called' : 'finish');
  }

  #usage(chunk: JsonObject, events: CanonicalEvent[]): void {
    const said = usageIn(chunk);
    const alone = readTokenUsage(said);
    if (alone === undefined || !isObject(said)) return;
    const before = this.#reported;
    this.#reported = before === undefined ? said : laterReport(before, said);
    const usage = before === undefined ? alone : (readTokenUsage(this.#reported) ?? alone);
    this.#start(events);
    const tier = word(chunk['service_tier']) ?? this.#serviceTier;
    events.push({ type: 'usage.report', usage: tier === undefined ? usage : { ...usage, serviceTier: tier } });
  }

  #remember(chunk: JsonObject): void {
    if (this.#started && this.#serviceTier !== undefined) return;
    this.#serviceTier ??= word(chunk['service_tier']);
    if (this.#started) return;
    const { id, model } = this.#meta;
    const created = chunk['created'];
    this.#meta = {
      ...this.#meta,
      ...defined({
        id: id ?? word(chunk['id']),
        model: model ?? word(chunk['model']),
        createdAt: typeof created === 'number' && created > 0 ? Math.floor(created) : undefined,
      }),
    };
  }

  #start(events: CanonicalEvent[]): void {
    if (this.#started) return;
    this.#started = true;
    events.push({ type: 'response.start', ...this.#meta });
  }

  #move(verb: UpstreamVerb): void {
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
 * Whether the texts of this stream wait for its end, where citations mostly come. Readers of another dialect see that wait:
 * for them a text ends when a tool call begins, unless the upstream was told to search by the suffix of its model. What else
 * asks for a search is said in chat, to clients that get the stream as it is.
 */
function awaitsCitations({ request, owner }: DecodeContext): boolean {
  return !request.stream || request.dialect === 'chat' || owner.model.endsWith(':online');
}

/** Whatever was said before, what is said last is a piece without logprobs. */
function endsInPiece(events: readonly CanonicalEvent[]): boolean {
  const event = events.at(-1);
  return event?.type === 'item.delta' && !(event.delta.kind === 'text' && event.delta.logprobs !== undefined);
}

/** Undefined for a chunk that has more of the answer than one piece of one thing. */
function plainOf(chunk: JsonObject, name: string, shape: JsonShape): Plain | undefined {
  const first = firstChoice(chunk);
  const delta = first?.choice['delta'];
  if (first?.at !== 0 || !isObject(delta) || isObject(first.choice['message'])) return undefined;
  const piece = PIECES.find(({ member }) => saysOnly(member, delta));
  const hole = piece === undefined ? -1 : holeAt(shape, piece.path);
  if (piece === undefined || hole === -1 || (piece.member === 'tool_calls' && !goesOn(delta))) return undefined;
  return { shape, name, member: piece.member, hole };
}

function readChunk(data: string): JsonObject {
  const chunk = tryJson(data);
  if (chunk === undefined) throw malformed('it is not JSON');
  return object(chunk, 'it is not an object');
}

/** A signature that comes late says nothing readable. */
function saysPayloadOnly(delta: JsonObject): boolean {
  const { reasoning_details: details, ...rest } = delta;
  return Array.isArray(details) && !saysSomething(rest) && details.every((entry) => (readDetail(entry)?.text ?? '') === '');
}
