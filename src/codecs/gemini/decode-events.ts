/** Chunks of `streamGenerateContent` as canonical events; a whole answer is the same thing in one chunk. */
import { advance, LifecycleError } from '../../streams/lifecycle.ts';
import type { Stage } from '../../streams/stage.ts';
import { upstreamFault } from '../canonical/error.ts';
import type { CanonicalEvent, Step } from '../canonical/event.ts';
import type { Logprobs } from '../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue, tryJson } from '../canonical/json.ts';
import type { Outcome } from '../canonical/outcome.ts';
import type { DecodeContext, Frame } from '../codec.ts';
import { compactJson, type JsonPath, jsonSlicer } from '../json/text.ts';
import { CitedSources } from './cited-sources.ts';
import { ItemComposer } from './compose-items.ts';
import { errorOf } from './errors.ts';
import { STREAM, type StreamState, type StreamVerb } from './lifecycle.ts';
import { blockedError, type Finish, isBlocked, outcomeOf } from './outcome.ts';
import { PartialArguments } from './partial-arguments.ts';
import { array, type Candidate, type Chunk, malformed, object, readChunk, text } from './read-chunk.ts';
import { readLogprobs, tokensOfParts } from './read-logprobs.ts';
import { UsageReports } from './usage.ts';

/** Metadata that has no canonical form; shown to readers of native events only. */
const METADATA = ['groundingMetadata', 'urlContextMetadata'] as const;

export class GenerateContentDecoder implements Stage<Frame, Step> {
  readonly #context: DecodeContext;
  readonly #sources = new CitedSources();
  readonly #items: ItemComposer;
  readonly #usage = new UsageReports();
  #state: StreamState = 'idle';
  #started = false;
  #index: number | undefined;
  #finish: Finish | undefined;
  /** Chunks of other candidates that came before candidate 0: they are the answer only if it never comes. */
  #others: { readonly json: JsonValue; readonly source: string; readonly index: number }[] = [];

  constructor(context: DecodeContext) {
    this.#context = context;
    this.#items = new ItemComposer(context, this.#sources);
  }

  get ended(): boolean {
    return this.#state === 'ended';
  }
  /** A finish reason was seen: if the upstream now stays silent, the answer is whole. */
  get finished(): boolean {
    return this.#state === 'finished';
  }

  push(frame: Frame, out: Step[]): void {
    if (this.ended || frame.data === '' || frame.data.trim() === '[DONE]') return;
    const json = parseFrame(frame.data);
    const events: CanonicalEvent[] = [];
    this.#read(json, frame.data, events);
    if (events.length > 0) out.push({ events });
  }

  /** The bytes ended. Throws `truncated` where no finish reason was seen. */
  end(out: Step[]): void {
    if (this.ended) return;
    const events: CanonicalEvent[] = [];
    this.#readOthers(events);
    this.#advance('close');
    const finish = this.#finish ?? { reason: 'STOP', message: undefined };
    const outcome = outcomeOf(finish, this.#items.calledTools);
    this.#items.finish(outcome.status === 'completed' ? 'completed' : 'incomplete', events);
    this.#close(outcome, events);
    out.push({ events });
  }

  #read(json: JsonValue, source: string, out: CanonicalEvent[]): void {
    const error = isObject(json) ? json['error'] : undefined;
    if (error !== undefined && error !== null) {
      this.#advance('error');
      out.push({ type: 'response.end', outcome: { status: 'failed', error: errorOf(error, source) } });
      return;
    }
    const chunk = readChunk(json, this.#index);
    const { promptFeedback } = chunk;
    const candidate = this.#holdOther(chunk.candidate, json, source) ? undefined : chunk.candidate;
    const blocked = candidate === undefined && isBlocked(promptFeedback) ? promptFeedback : undefined;
    this.#advance(blocked !== undefined ? 'blocked' : verbOf(candidate));
    this.#start(chunk, out);
    if (candidate !== undefined) this.#readCandidate(candidate, source, out);
    if (chunk.usage !== undefined) this.#usage.read(chunk.usage);
    if (blocked !== undefined) {
      this.#close({ status: 'failed', error: blockedError(blocked) }, out);
      return;
    }
    const usage = this.#usage.take();
    if (usage !== undefined) out.push({ type: 'usage.report', usage });
  }

  /** True for a candidate that has to wait, since candidate 0 may still come. */
  #holdOther(candidate: Candidate | undefined, json: JsonValue, source: string): boolean {
    const index = candidate?.index ?? 0;
    if (candidate === undefined || this.#index !== undefined || index === 0) return false;
    this.#others.push({ json, source, index });
    return true;
  }

  /** Candidate 0 never came: the first one that did is the answer. */
  #readOthers(out: CanonicalEvent[]): void {
    const others = this.#index === undefined ? this.#others : [];
    this.#index ??= others[0]?.index;
    this.#others = [];
    for (const { json, source } of others) {
      const { candidate } = readChunk(json, this.#index);
      if (candidate === undefined) continue;
      this.#advance(verbOf(candidate));
      this.#readCandidate(candidate, source, out);
      // It was reported before its answer began.
      this.#usage.again();
    }
  }

  #start(chunk: Chunk, out: CanonicalEvent[]): void {
    if (this.#started) return;
    this.#started = true;
    const { responseId: id, modelVersion: model } = chunk;
    out.push({ type: 'response.start', ...(id === undefined ? {} : { id }), ...(model === undefined ? {} : { model }) });
  }

  #readCandidate(candidate: Candidate, source: string, out: CanonicalEvent[]): void {
    this.#index ??= 0;
    const { finishReason: reason, finishMessage: message, json, parts } = candidate;
    // Some servers close an answer with STOP whatever it was cut by.
    if (reason !== undefined && (reason !== 'STOP' || this.#finish === undefined)) this.#finish = { reason, message };
    this.#sources.read(json);
    const logprobs = this.#context.request.logprobs === undefined ? [] : readLogprobs(json);
    const beside = tokensOfParts(parts, logprobs);
    const at: Place = { slice: jsonSlicer(source), candidate: candidate.place, part: 0 };
    for (const part of parts) {
      this.#readPart(part, at, beside.get(part), out);
      at.part += 1;
    }
    if (logprobs.length > 0 && beside.size === 0) this.#items.lateLogprobs(logprobs);
    for (const name of METADATA) {
      const body = json[name];
      if (isObject(body) && Object.keys(body).length > 0) out.push({ type: 'native.event', dialect: 'gemini', name, body });
    }
  }

  #readPart(part: JsonObject, at: Place, logprobs: Logprobs | undefined, out: CanonicalEvent[]): void {
    const signature = text(part, 'thoughtSignature') ?? text(part, 'thought_signature');
    const call = object(part, 'functionCall');
    const media = kindOf(part) === 'thought' ? undefined : (object(part, 'inlineData') ?? object(part, 'fileData'));
    const words = part['text'] ?? undefined;
    if (words !== undefined && typeof words !== 'string') throw malformed('text');
    // Some servers write a text beside the member that counts, mostly an empty one.
    const isText = call === undefined && media === undefined;
    if (words !== undefined && (isText || words !== '')) {
      const said = { kind: kindOf(part), text: words, signature: isText ? signature : undefined, logprobs };
      this.#items.text(said, at.part === 0, out);
    }
    if (call !== undefined) {
      this.#readCall(call, signature, at, out);
    } else if (media !== undefined) {
      this.#items.media(part, signature, out);
    } else if (words === undefined) {
      this.#readOther(part, signature, out);
    }
  }

  /** A part of the vendor's own kind, or one that brings nothing but a signature. */
  #readOther(part: JsonObject, signature: string | undefined, out: CanonicalEvent[]): void {
    if (Object.entries(part).some(([name, value]) => value !== null && !MODIFIERS.has(name))) this.#items.native(part, out);
    else if (signature !== undefined) this.#items.signature(signature, kindOf(part), out);
  }

  /** A call is whole in one part, or its name comes first and its arguments follow by path in further parts. */
  #readCall(call: JsonObject, signature: string | undefined, at: Place, out: CanonicalEvent[]): void {
    const name = text(call, 'name');
    const pieces = array(call, 'partialArgs');
    const continues = call['willContinue'] === true;
    if (name === undefined && this.#items.arriving === undefined) {
      // Some servers close a call that was whole already.
      if (Object.keys(call).length === 0 && this.#items.calledTools) return;
      throw malformed('functionCall');
    }
    if (name !== undefined) {
      const wire = { name, id: text(call, 'id'), signature };
      const isWhole = pieces.length === 0 && !continues;
      const input = isWhole ? argumentsOf(call, at) : undefined;
      this.#items.call(wire, input, isWhole ? undefined : new PartialArguments(), out);
      if (isWhole) return;
    } else if (signature !== undefined) {
      this.#items.signature(signature, 'text', out);
    }
    const arriving = this.#items.arriving;
    if (arriving === undefined) return;
    for (const [index, piece] of pieces.entries()) {
      arriving.add(piece, () => slice(at, 'partialArgs', index, 'numberValue'));
    }
    if (!continues) this.#items.callInput(arriving.toJson(), out);
  }

  #close(outcome: Outcome, out: CanonicalEvent[]): void {
    // A failure is paid by what is reported beside it.
    if (outcome.status === 'failed') this.#usage.again();
    const usage = this.#usage.take();
    if (usage !== undefined) out.push({ type: 'usage.report', usage });
    out.push({ type: 'response.end', outcome });
  }

  #advance(verb: StreamVerb): void {
    try {
      this.#state = advance('stream', STREAM, this.#state, verb);
    } catch (error) {
      if (!(error instanceof LifecycleError)) throw error;
      if (verb === 'close') throw upstreamFault('truncated', 'The upstream ended before it gave a finish reason.');
      throw upstreamFault('illegal_lifecycle', `The upstream's stream is out of order (${error.message}).`);
    }
  }
}

function kindOf(part: JsonObject): 'text' | 'thought' {
  return part['thought'] === true ? 'thought' : 'text';
}

function verbOf(candidate: Candidate | undefined): StreamVerb {
  return candidate?.finishReason === undefined ? 'chunk' : 'finish';
}

/** Where a part stands in the text of its chunk. */
interface Place {
  readonly slice: (path: JsonPath) => string | undefined;
  readonly candidate: number;
  part: number;
}

/** A member of the part's call, exactly as it was sent. */
function slice(at: Place, ...path: readonly (string | number)[]): string | undefined {
  const part: JsonPath = ['candidates', at.candidate, 'content', 'parts', at.part];
  return at.slice([...part, 'functionCall', ...path]) ?? at.slice([...part, 'function_call', ...path]);
}

/** The arguments as they are spelled, without white space between tokens. */
function argumentsOf(call: JsonObject, at: Place): string {
  const args = call['args'];
  if (args === undefined || args === null) return '{}';
  if (typeof args === 'string') return args;
  const spelled = slice(at, 'args');
  return spelled === undefined ? JSON.stringify(args) : compactJson(spelled);
}

const MODIFIERS = new Set([
  'thought',
  'thoughtSignature',
  'thought_signature',
  'videoMetadata',
  'mediaResolution',
  'partMetadata',
]);

function parseFrame(data: string): JsonValue {
  const json = tryJson(data);
  if (json === undefined) throw upstreamFault('malformed_event', 'The upstream sent a chunk that is not JSON.', { text: data });
  return json;
}
