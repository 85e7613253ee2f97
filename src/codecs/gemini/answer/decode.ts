/** Chunks of `streamGenerateContent` as canonical events; a whole answer is the same thing in one chunk. */
import { NO_ARGUMENTS } from '../../tools/arguments.ts';
import { advance, LifecycleError } from '../../../streams/lifecycle.ts';
import { upstreamFault } from '../../canonical/error.ts';
import type { CanonicalEvent, Step } from '../../canonical/event.ts';
import type { Logprobs } from '../../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { Outcome } from '../../canonical/outcome.ts';
import type { DecodeContext, EventDecoder, Frame } from '../../codec.ts';
import { defined } from '../../defined.ts';
import { compactJson, type JsonPath, jsonSlicer } from '../../json/text.ts';
import { jsonOf } from '../../json/frame.ts';
import { CitedSources } from './decode-citations.ts';
import { ItemComposer } from './decode-items.ts';
import { errorOf } from '../errors.ts';
import { STREAM, type StreamState, type StreamVerb } from '../lifecycle.ts';
import { blockedError, type Finish, isBlocked, outcomeOf } from './outcome.ts';
import { PartialArguments } from './decode-arguments.ts';
import {
  arrayOrEmpty,
  type Candidate,
  type Chunk,
  malformed,
  optionalObject,
  readChunk,
  optionalString,
} from './decode-chunk.ts';
import { readLogprobs, tokensOfParts } from './decode-logprobs.ts';
import { UsageReports } from './usage.ts';

/** Metadata without a canonical form, passed on as native events. */
const METADATA = ['groundingMetadata', 'urlContextMetadata'] as const;

export class GenerateContentDecoder implements EventDecoder {
  readonly #context: DecodeContext;
  readonly #sources = new CitedSources();
  readonly #items: ItemComposer;
  readonly #usage = new UsageReports();
  #state: StreamState = 'idle';
  #started = false;
  /** The wire's index of the candidate that is the answer. */
  #index: number | undefined;
  #finish: Finish | undefined;
  /** Chunks of other candidates that arrived before candidate 0. They are the answer only if candidate 0 never arrives. */
  #otherChunks: { readonly json: JsonValue; readonly source: string; readonly index: number }[] = [];

  constructor(context: DecodeContext) {
    this.#context = context;
    this.#items = new ItemComposer(context, this.#sources);
  }

  get ended(): boolean {
    return this.#state === 'ended';
  }
  /** A finish reason was seen, so the answer counts as whole if nothing more arrives. */
  get finished(): boolean {
    return this.#state === 'finished';
  }

  push(frame: Frame, out: Step[]): void {
    if (this.ended || frame.data === '' || frame.data.trim() === '[DONE]') return;
    const json = parseFrame(frame);
    const events: CanonicalEvent[] = [];
    this.#read(json, frame.data, events);
    if (events.length > 0) out.push({ events });
  }

  /** The bytes ended. Throws `truncated` where no finish reason was seen. */
  end(out: Step[]): void {
    if (this.ended) return;
    const events: CanonicalEvent[] = [];
    this.#readOtherChunks(events);
    this.#advance('close');
    const finish = this.#finish ?? { reason: 'STOP', message: undefined };
    const outcome = outcomeOf(finish, this.#items.hasToolCalls);
    this.#items.finish(outcome.status === 'completed' ? 'completed' : 'incomplete', events);
    this.#close(outcome, events);
    out.push({ events });
  }

  endInside(out: Step[]): boolean {
    if (!this.finished) return false;
    this.end(out);
    return true;
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
    const candidate = this.#deferOther(chunk.candidate, json, source) ? undefined : chunk.candidate;
    const blocked = candidate === undefined && isBlocked(promptFeedback) ? promptFeedback : undefined;
    this.#advance(blocked !== undefined ? 'blocked' : verbOf(candidate));
    if (chunk.usage !== undefined) this.#readUsage(chunk.usage);
    this.#start(chunk, out);
    if (candidate !== undefined) this.#readCandidate(candidate, source, out);
    if (blocked !== undefined) {
      this.#close({ status: 'failed', error: blockedError(blocked) }, out);
      return;
    }
    this.#report(out);
  }

  #readUsage(metadata: JsonObject): void {
    this.#usage.read(metadata);
    // With the finish the same counts as before are no longer those until then, but those of the answer.
    if (this.#state === 'finished' && !this.#usage.isOutputOlder) this.#usage.reportAgain();
  }

  #report(out: CanonicalEvent[]): void {
    const usage = this.#usage.take();
    if (usage === undefined) return;
    out.push({ type: 'usage.report', usage, ...(this.#usage.isOutputOlder ? { isOutputOlder: true } : {}) });
  }

  /** Keeps a chunk of another candidate while candidate 0 may still arrive; true where it did. */
  #deferOther(candidate: Candidate | undefined, json: JsonValue, source: string): boolean {
    const index = candidate?.index ?? 0;
    if (candidate === undefined || this.#index !== undefined || index === 0) return false;
    this.#otherChunks.push({ json, source, index });
    return true;
  }

  /** Where candidate 0 never arrived, the first one that did is the answer. */
  #readOtherChunks(out: CanonicalEvent[]): void {
    const deferred = this.#index === undefined ? this.#otherChunks : [];
    this.#index ??= deferred[0]?.index;
    this.#otherChunks = [];
    for (const { json, source } of deferred) {
      const { candidate } = readChunk(json, this.#index);
      if (candidate === undefined) continue;
      this.#advance(verbOf(candidate));
      this.#readCandidate(candidate, source, out);
      // Usage was reported before the answer began: it is reported once more, since an early report counts as a placeholder.
      this.#usage.reportAgain();
    }
  }

  #start(chunk: Chunk, out: CanonicalEvent[]): void {
    if (this.#started) return;
    this.#started = true;
    const { responseId: id, modelVersion: model } = chunk;
    out.push({ type: 'response.start', ...defined({ id, model, served: this.#usage.servedBeforeCounts }) });
  }

  #readCandidate(candidate: Candidate, text: string, out: CanonicalEvent[]): void {
    this.#index ??= 0;
    const { finishReason: reason, finishMessage: message, json, parts } = candidate;
    // Some servers close an answer with STOP after the true reason.
    if (reason !== undefined && (reason !== 'STOP' || this.#finish === undefined)) this.#finish = { reason, message };
    this.#sources.read(json);
    const logprobs = this.#context.request.logprobs === undefined ? [] : readLogprobs(json);
    const tokensByPart = tokensOfParts(parts, logprobs);
    const source: PartSource = { slice: jsonSlicer(text), candidate: candidate.position, part: 0 };
    for (const part of parts) {
      this.#readPart(part, source, tokensByPart.get(part), out);
      source.part += 1;
    }
    if (logprobs.length > 0 && tokensByPart.size === 0) this.#items.addLogprobs(logprobs);
    for (const name of METADATA) {
      const body = json[name];
      if (isObject(body) && Object.keys(body).length > 0) out.push({ type: 'native.event', dialect: 'gemini', name, body });
    }
  }

  #readPart(part: JsonObject, source: PartSource, logprobs: Logprobs | undefined, out: CanonicalEvent[]): void {
    const signature = optionalString(part, 'thoughtSignature') ?? optionalString(part, 'thought_signature');
    const call = optionalObject(part, 'functionCall');
    const media =
      kindOf(part) === 'thought' ? undefined : (optionalObject(part, 'inlineData') ?? optionalObject(part, 'fileData'));
    const text = part['text'] ?? undefined;
    if (text !== undefined && typeof text !== 'string') throw malformed('text');
    // Some servers write a text, mostly an empty one, beside the member that counts.
    const isText = call === undefined && media === undefined;
    if (text !== undefined && (isText || text !== '')) {
      const piece = { kind: kindOf(part), text, signature: isText ? signature : undefined, logprobs };
      this.#items.addText(piece, source.part === 0, out);
    }
    if (call !== undefined) {
      this.#readCall(call, signature, source, out);
    } else if (media !== undefined) {
      this.#items.addMedia(part, signature, out);
    } else if (text === undefined) {
      this.#readOther(part, signature, out);
    }
  }

  /** A part of a kind without a canonical form, or one that holds nothing but a signature. */
  #readOther(part: JsonObject, signature: string | undefined, out: CanonicalEvent[]): void {
    if (Object.entries(part).some(([name, value]) => value !== null && !MODIFIERS.has(name))) this.#items.addNative(part, out);
    else if (signature !== undefined) this.#items.addSignature(signature, kindOf(part), out);
  }

  /** A call is whole in one part, or its first part gives the name and further parts give the arguments by path. */
  #readCall(call: JsonObject, signature: string | undefined, source: PartSource, out: CanonicalEvent[]): void {
    const name = optionalString(call, 'name');
    const pieces = arrayOrEmpty(call, 'partialArgs');
    const continues = call['willContinue'] === true;
    if (name === undefined && this.#items.partialArguments === undefined) {
      // Some servers send an empty call after a whole one.
      if (Object.keys(call).length === 0 && this.#items.hasToolCalls) return;
      throw malformed('functionCall');
    }
    if (name !== undefined) {
      const wire = { name, id: optionalString(call, 'id'), signature };
      const isWhole = pieces.length === 0 && !continues;
      const input = isWhole ? argumentsOf(call, source) : undefined;
      this.#items.beginCall(wire, input, isWhole ? undefined : new PartialArguments(), out);
      if (isWhole) return;
    } else if (signature !== undefined) {
      this.#items.addSignature(signature, 'text', out);
    }
    const partial = this.#items.partialArguments;
    if (partial === undefined) return;
    for (const [index, piece] of pieces.entries()) {
      partial.add(piece, () => sliceCall(source, 'partialArgs', index, 'numberValue'));
    }
    if (!continues) this.#items.completeCall(partial.toJson(), out);
  }

  #close(outcome: Outcome, out: CanonicalEvent[]): void {
    // A failed answer is billed by the usage that is reported with its end.
    if (outcome.status === 'failed') this.#usage.reportAgain();
    this.#report(out);
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

/** The text of a chunk and the part of it that is being read, for exact slices. */
interface PartSource {
  readonly slice: (path: JsonPath) => string | undefined;
  readonly candidate: number;
  part: number;
}

/** A member of the part's function call, exactly as it was sent. */
function sliceCall({ slice, candidate, part }: PartSource, ...path: readonly (string | number)[]): string | undefined {
  const at: JsonPath = ['candidates', candidate, 'content', 'parts', part];
  return slice([...at, 'functionCall', ...path]) ?? slice([...at, 'function_call', ...path]);
}

/** The arguments in the upstream's own spelling, without white space between tokens. */
function argumentsOf(call: JsonObject, source: PartSource): string {
  const args = call['args'];
  if (args === undefined || args === null) return NO_ARGUMENTS;
  if (typeof args === 'string') return args;
  const text = sliceCall(source, 'args');
  return text === undefined ? JSON.stringify(args) : compactJson(text);
}

/** Members that a part may have beside its content. */
const MODIFIERS = new Set([
  'thought',
  'thoughtSignature',
  'thought_signature',
  'videoMetadata',
  'mediaResolution',
  'mediaProcessing',
  'speechMetadata',
  'partMetadata',
]);

function parseFrame(frame: Frame): JsonValue {
  const json = jsonOf(frame);
  if (json === undefined)
    throw upstreamFault('malformed_event', 'The upstream sent a chunk that is not JSON.', { text: frame.data });
  return json;
}
