/**
 * The interfaces that a protocol implements. A dialect is one folder under `codecs/` with a client side, an upstream side, or
 * both; `codecs/registry.ts` names them all. Every codec obeys the laws in `test/support/laws.ts`.
 */
import type { EventRun } from '../streams/sse-encode.ts';
import type { SealingStage, Stage } from '../streams/stage.ts';
import type { ChannelType, Dialect } from './canonical/dialect.ts';
import type { GatewayError } from './canonical/error.ts';
import type { Native, Step } from './canonical/event.ts';
import type { RequestLosses, ResponseFeature, ResponseLosses } from './canonical/features.ts';
import type { Whole } from './canonical/fold.ts';
import type { JsonObject, JsonValue } from './canonical/json.ts';
import type { Opaque, Owner } from './canonical/opaque.ts';
import { type Steps, whole } from './steps.ts';
import type { CanonicalRequest, Refusable, SentRequest } from './canonical/request.ts';
import type { Ends } from './json/text.ts';
import type { ToolNames } from './tools/names.ts';

/** One event of a stream before it is framed (SSE or WebSocket). `event` is undefined where the dialect names no events. */
export interface Frame {
  readonly event: string | undefined;
  readonly data: string;
  /** `data` is known to hold no line break, as everything that JSON.stringify wrote: it need not be searched for one. */
  readonly oneLine?: boolean;
  /** What `data` holds, where it was parsed already. */
  readonly json?: JsonValue;
  /** Where long values of `data` end, by their start. */
  readonly ends?: Ends;
  /** `data` holds UTF-8 bytes, one character each. No decoder sees such a frame: see `answers/large-events.ts`. */
  readonly isUndecoded?: true;
}

/** What an encoder writes: a frame, or several that differ in a piece alone. */
export type OutFrame = Frame | EventRun;

/** The frames of it, each by itself. */
export function framesOf(written: OutFrame): readonly Frame[] {
  if (!('pieces' in written)) return [written];
  const { event, head, pieces, tail } = written;
  return pieces.map((piece) => ({ event, data: `${head}${piece}${tail}`, oneLine: true }));
}

/** Makes a new id: the prefix and 32 hexadecimal characters. It is passed in, so that codecs are deterministic. */
export type Mint = (prefix: string) => string;

export interface RequestContext {
  /**
   * Opens an envelope of this account; undefined when it is tampered, truncated or of another account. Such values are dropped.
   */
  open(sealed: string): Opaque | undefined;
  /** An item of an earlier answer, for protocols whose clients may refer to it by its id; undefined for an unknown id. */
  item?(id: string): JsonObject | undefined;
}

export interface ResponseContext {
  /** Minted once for each exchange, in the form of the client's dialect. */
  readonly responseId: string;
  /** The logical model: shown on every event. */
  readonly model: string;
  /** Unix seconds of the exchange, for dialects that need it when the upstream gave none in the same dialect. */
  readonly createdAt: number;
  /** The current time in Unix seconds, for members that tell when an answer was complete. Absent: these are left out. */
  readonly now?: () => number;
  readonly request: SentRequest;
  /** The input tokens by the estimate of the admission, for dialects that tell them before the upstream does. */
  readonly inputEstimate?: number;
  /** The upstream that is answering. */
  readonly owner: Owner;
  /** Turns an opaque value into an envelope (`mz2.…`). */
  seal(opaque: Opaque): string;
  readonly mint: Mint;
  /** Told of each feature of the answer that the client's dialect drops or writes in another form, perhaps more than once. */
  readonly lost?: (feature: ResponseFeature) => void;
}

/** Steps as the stream that a client reads. */
export interface ClientEncoder extends SealingStage<Step, OutFrame, GatewayError> {
  /**
   * The good ending, which the last call put at the end of `out`, must not go out: takes it back and writes a failure in its
   * place. Never throws.
   */
  failInstead(failure: GatewayError, out: OutFrame[]): void;
}

/** The side that clients speak. */
export interface ClientCodec {
  readonly dialect: Dialect;
  readonly losses: ResponseLosses;
  /** The prefix of a response id (`resp_mizu_`, `chatcmpl-`, `msg_`, `cmpl-`). */
  readonly idPrefix: string;
  /** The same in one go. */
  decodeRequest(text: string, json: JsonObject, context: RequestContext): CanonicalRequest;
  /** Throws GatewayError with the path of the wrong field. `text` is the exact body that parsed to `json`. */
  decodeInSteps(text: string, json: JsonObject, context: RequestContext): Steps<CanonicalRequest>;
  /** Events for a streaming client. Ends with the dialect's own ending, or with its error form through `fail`. */
  encodeEvents(context: ResponseContext): ClientEncoder;
  /** The same, where events repeat much of a large request: that is written ahead, in steps. Absent: no event does. */
  readonly encodeEventsInSteps?: (context: ResponseContext) => Steps<ClientEncoder>;
  /** The same in one go. */
  encodeResponse(whole: Whole, native: Native | undefined, context: ResponseContext): string;
  /**
   * The body for a non-streaming client. `native` is the upstream's own body when it speaks the same dialect: it is spliced.
   * An outcome `failed` or `cancelled` arrives here only for responses; the others answer with `encodeError`.
   */
  encodeResponseInSteps(whole: Whole, native: Native | undefined, context: ResponseContext): Steps<string>;
  /**
   * A failure as one frame that holds whatever its stream has written: for when the encoder itself can write nothing any more.
   */
  errorFrame(error: GatewayError): Frame;
  /** The body of an error answer. */
  encodeError(error: GatewayError, requestId: string): string;
}

/** Facts about the upstream's model, from the operator or the defaults of the config. No codec looks at the name of a model. */
export interface ModelFacts {
  /**
   * How a messages upstream takes effort: `adaptive` (default), or `budget` for older models. gemini: `budget` (default) or
   * `level`.
   */
  readonly thinking?: 'adaptive' | 'budget' | 'level';
  /** gemini: the model has no thinking level `minimal`. */
  readonly noMinimalThinking?: boolean;
  /** gemini: results of functions are text alone; their media stand behind them. */
  readonly noMediaInResults?: boolean;
  /** gemini: the model refuses a JSON format together with functions. */
  readonly noFormatBesideTools?: boolean;
  /** messages: the model refuses temperatures but 1, `top_p` below 0.99 and `top_k`. */
  readonly fixedSampling?: boolean;
  /** messages: the model refuses the effort `xhigh`. */
  readonly noXhighEffort?: boolean;
  readonly minThinkingBudget?: number;
  readonly maxThinkingBudget?: number;
}

/** The Channel options that codecs read; the config has more. */
export interface CodecOptions {
  /** chat upstreams that want `max_tokens` instead of `max_completion_tokens`. */
  readonly legacyOutputCap?: boolean;
  /**
   * chat: send `reasoning_content` of history back (DeepSeek-style); the default sends back the surface it arrived on. messages:
   * send thinking back that nobody signed (servers that sign nothing).
   */
  readonly replayReasoningContent?: boolean;
  /** Accept `[DONE]` without a finish reason from an upstream known to do so. */
  readonly acceptDoneWithoutFinish?: boolean;
  /** chat upstreams without the role `developer`: its messages become those of the system. */
  readonly developerAsSystem?: boolean;
  /** `auto`: cache breakpoints where the client set none. */
  readonly cacheBreakpoints?: 'auto';
  /** chat: write them as routers do, `cache_control` in place of `prompt_cache_breakpoint`. */
  readonly routerCacheControl?: boolean;
  /** Lower freeform custom tools to a function with one string `input`, since the dialect or this upstream has functions only. */
  readonly lowerCustomTools?: boolean;
}

/** Where a request goes: one attempt. */
export interface Target {
  readonly owner: Owner;
  readonly options: CodecOptions;
  readonly facts: ModelFacts;
  /** What this upstream has just refused: its one retry sends none of it. */
  readonly without: ReadonlySet<Refusable>;
  /** True when this Channel made the item with this id and stored it (design: "history replay"). Absent: unknown. */
  readonly stored?: (itemId: string) => boolean;
}

export interface UpstreamRequest {
  /** Appended to the Channel's versioned base URL, with its query (`/chat/completions`). */
  readonly path: string;
  readonly body: string;
  /** Protocol headers only (version, betas); credentials are the Channel's. Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly toolNames: ToolNames;
  /** Stop sequences that the upstream was not sent, which end the answer all the same. */
  readonly ownStops?: readonly string[];
  /** Names of the features that the loss table dropped or coerced in this request, for the log. */
  readonly losses: readonly string[];
}

export interface DecodeContext {
  readonly owner: Owner;
  readonly request: SentRequest;
  readonly toolNames: ToolNames;
  readonly options: CodecOptions;
  readonly mint: Mint;
}

/** An HTTP error answer. */
export interface UpstreamAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly text: string;
  /** Unix milliseconds; retry dates are relative to it. */
  readonly receivedAtMs?: number;
}

export interface EventDecoder extends Stage<Frame, Step> {
  /** The finish was seen and only the end of the stream is missing: five silent seconds then count as the end. */
  readonly finished?: boolean;
  /**
   * The input ended inside an event. True where the dialect's finish stands before it, so that the answer is whole: it has then
   * been ended. Absent: such an end is always a truncation.
   */
  endInside?(out: Step[]): boolean;
}

/** The side that upstreams speak. */
export interface UpstreamCodec {
  readonly dialect: Dialect;
  readonly channelType: ChannelType;
  readonly losses: RequestLosses;
  /** The same in one go. */
  encodeRequest(request: CanonicalRequest, target: Target): UpstreamRequest;
  /** Pure, and called for each attempt on the same request. Throws `unsupported_conversion` with the client's path. */
  encodeInSteps(request: CanonicalRequest, target: Target): Steps<UpstreamRequest>;
  /**
   * Checks the dialect's own order, then decodes meaning. Throws GatewayError blaming the upstream. `end` throws on truncation.
   */
  decodeEvents(context: DecodeContext): EventDecoder;
  /** The same in one go. */
  decodeResponse(text: string, context: DecodeContext): Step;
  /** Decodes a whole JSON body as one step. Throws GatewayError blaming the upstream. */
  decodeResponseInSteps(text: string, context: DecodeContext): Steps<Step>;
  /** Decodes an error answer. Clients may see the message; the full text is in `details.upstream`, for the log. */
  decodeError(answer: UpstreamAnswer): GatewayError;
}

/** A codec is written in steps, as the gateway runs it. What does them in one go is made of that: the two cannot differ. */
export function clientCodec(steps: Omit<ClientCodec, 'decodeRequest' | 'encodeResponse'>): ClientCodec {
  const { decodeInSteps, encodeResponseInSteps } = steps;
  return { ...steps, decodeRequest: whole(decodeInSteps), encodeResponse: whole(encodeResponseInSteps) };
}

/** The same. One that differs a little from another: `upstreamCodec({ ...chatUpstream, channelType, encodeInSteps })`. */
export function upstreamCodec(steps: Omit<UpstreamCodec, 'encodeRequest' | 'decodeResponse'>): UpstreamCodec {
  const { encodeInSteps, decodeResponseInSteps } = steps;
  return { ...steps, encodeRequest: whole(encodeInSteps), decodeResponse: whole(decodeResponseInSteps) };
}
