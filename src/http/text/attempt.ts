/**
 * One attempt of a text endpoint: encode the request for this Channel, send it, and read until the commit point. Anything that an
 * upstream sends instead of an answer (an error status, an error event, HTML) becomes a GatewayError, which the attempt loop
 * judges.
 */
import { byClient, type GatewayError, havingUsed, upstreamFault } from '../../codecs/canonical/error.ts';
import type { Native, Step } from '../../codecs/canonical/event.ts';
import type { Fold, Whole } from '../../codecs/canonical/fold.ts';
import type { Opaque, Owner } from '../../codecs/canonical/opaque.ts';
import type { CanonicalRequest } from '../../codecs/canonical/request.ts';
import { isPlaceholder, type Usage } from '../../codecs/canonical/usage.ts';
import type { DecodeContext, UpstreamCodec, UpstreamRequest } from '../../codecs/codec.ts';
import { namingMembers } from '../../codecs/errors/member-words.ts';
import { namesOtherModels, namingModel } from '../../codecs/errors/model-names.ts';
import { type Answer, type Framing, readWhole, type Wording } from '../../codecs/pipeline.ts';
import { atOnce, type Steps } from '../../codecs/steps.ts';
import { stoppedStep, stoppingDecoder } from '../../codecs/answers/own-stops.ts';
import { asksForCompaction, compactionStep, type SealingContext, summaryRequestOf } from '../../codecs/responses/summary.ts';
import type { Clock } from '../../streams/clock.ts';
import type { IdleTimers } from '../../streams/idle-timers.ts';
import type { Channel, Model } from '../config/config.ts';
import { factsByName } from '../config/thinking-by-name.ts';
import type { Target } from '../dispatch/plan.ts';
import { LONG_CHARS } from '../../streams/text-pieces.ts';
import { type Asker, callUpstream, contentTypeOf, type UpstreamLink } from '../dispatch/call-upstream.ts';
import { quotingNoCredentials } from '../dispatch/credentials.ts';
import { joinList, applyParameters } from '../dispatch/upstream.ts';
import type { UpstreamHead } from '../dispatch/upstream-call.ts';
import { readErrorText, readWhole as readBody } from '../dispatch/upstream-body.ts';
import type { CallContext, Gateway } from '../gateway.ts';
import { framingOf } from '../platforms/session.ts';
import { isLarge } from '../request/large-work.ts';
import { codecTarget, decodeContext } from './codec-contexts.ts';
import { bySummary } from './need.ts';
import { AnswerStream, type AnswerSource, commits, wholeAsSource } from './answer-stream.ts';

export interface TextAttemptOptions {
  readonly call: Asker &
    Pick<CallContext, 'config'> & {
      readonly gateway: Pick<Gateway, 'codecs' | 'largeWork' | 'streamTurns' | 'mint'>;
    };
  readonly request: CanonicalRequest;
  readonly model: Model;
  /** Whose turns of the event loop the answer takes: the key's. */
  readonly party: string;
  /** Makes an envelope of the client's account. */
  readonly seal: (opaque: Opaque) => string;
  readonly link?: UpstreamLink | undefined;
  /** Which items the Channel stored, as far as the history knows. */
  readonly stored?: (channelId: string) => (itemId: string) => boolean;
}

/** An answer at its commit point. */
export interface StreamStart {
  readonly kind: 'stream';
  readonly owner: Owner;
  /** Read already but not sent yet; emptied when it is sent. */
  readonly held: Step[];
  readonly source: AnswerSource;
  /** See {@link WholeAnswer.generated}. */
  readonly generated?: Whole;
  /** The gateway itself may end it, at a stop sequence that its upstream does not know. */
  readonly mayStop: boolean;
  readonly losses: readonly string[];
}

export interface WholeAnswer {
  readonly kind: 'whole';
  /** Characters or bytes of the upstream's answer. */
  readonly length: number;
  readonly owner: Owner;
  readonly whole: Whole;
  /** What the model wrote, where that is not what is answered: the summary of a compaction. */
  readonly generated?: Whole;
  readonly native: Native | undefined;
  readonly losses: readonly string[];
}

interface Sent {
  readonly codec: UpstreamCodec;
  readonly context: DecodeContext;
  readonly encoded: UpstreamRequest;
  readonly head: UpstreamHead;
  readonly timers: IdleTimers;
  readonly word: Wording;
  readonly framing: Framing | undefined;
  /** The attempt is over once it is aborted. */
  readonly signal: AbortSignal;
  /** A summary was asked for, which answers as a compaction. */
  readonly isSummary: boolean;
}

/** Resolves at the commit point: until then nothing may be sent to the client. */
export function attemptStream(target: Target, options: TextAttemptOptions): Promise<StreamStart> {
  return send(target, options, async (sent) => {
    const generated = sent.isSummary ? (await wholeAnswer(sent, options)).whole : undefined;
    const source =
      generated === undefined
        ? await openSource(sent, options)
        : wholeAsSource(compactionStep(generated, sealing(sent, options)), sent.word);
    const held = await readUntilCommit(source, options);
    const { ownStops = [], losses } = sent.encoded;
    const start = { owner: sent.context.owner, held, source, mayStop: ownStops.length > 0, losses };
    return { kind: 'stream', ...start, ...(generated === undefined ? {} : { generated }) };
  });
}

/**
 * Resolves with the whole answer. An answer that failed or was cancelled before its first item is thrown, so that the next
 * Channel may be tried.
 */
export function attemptWhole(target: Target, options: TextAttemptOptions): Promise<WholeAnswer> {
  return send(target, options, async (sent) => {
    const answer = await wholeAnswer(sent, options);
    if (!sent.isSummary) return answer;
    const { fold } = readWhole(compactionStep(answer.whole, sealing(sent, options)), sent.word);
    return { ...answer, whole: wholeOf(fold), generated: answer.whole, native: undefined };
  });
}

async function wholeAnswer(sent: Sent, options: TextAttemptOptions): Promise<WholeAnswer> {
  const { context, encoded, head, timers } = sent;
  let answer: Answer<readonly Step[]>;
  let length: number;
  if (contentTypeOf(head) === 'text/event-stream') {
    const source = await openSource(sent, options);
    answer = { steps: await readToEnd(source), fold: source.fold };
    ({ length } = source);
  } else {
    const decoded = await decodeWhole(sent, options);
    answer = readWhole(decoded.step, sent.word);
    ({ length } = decoded);
  }
  timers.stop();
  const { steps, fold } = answer;
  throwEarlyFailure(steps);
  const whole = wholeOf(fold);
  const [only] = steps;
  const native = steps.length === 1 && only?.native?.name === 'response' ? only.native : undefined;
  return { kind: 'whole', length, owner: context.owner, whole, native, losses: encoded.losses };
}

function sealing({ context: { owner, mint } }: Sent, { seal }: TextAttemptOptions): SealingContext {
  return { owner, mint, seal };
}

/** Throws where this Channel's dialect cannot take the request; later failures reject the promise. */
function send<Answer>(target: Target, options: TextAttemptOptions, read: (sent: Sent) => Promise<Answer>): Promise<Answer> {
  const { channel, upstreamModel } = target;
  const { call } = options;
  const { codecs, largeWork } = call.gateway;
  const isSummary = asksForCompaction(options.request) && bySummary(channel, options.model);
  const codec = codecs.upstream(channel.type);
  const facts = factsByName(options.model.facts, channel.type, upstreamModel);
  const goal = codecTarget(target, facts, options.stored);
  const steps = encodeInSteps(codec, isSummary ? summaryRequestOf(options.request) : options.request, goal);
  const sendEncoded = ({ request, encoded }: Encoded) =>
    callUpstream(
      call,
      target,
      {
        path: encoded.path,
        headers: protocolHeaders(encoded.headers, options, codec),
        body: applyParameters(encoded.body, channel),
      },
      {
        link: options.link,
        stream: request.stream,
        goesOn: true,
        decodeError: (refused) =>
          blamed(namingMembers(codec.decodeError(refused), request, codec.dialect), upstreamModel, request.model),
      },
      (head, timers) => {
        const context = decodeContext(call.gateway, goal, request, encoded);
        const word = wordingOf(channel, head.lent, upstreamModel, request.model);
        return read({
          codec,
          context,
          encoded,
          head,
          timers,
          word,
          isSummary,
          framing: head.framing ?? framingOf(channel),
          signal: target.signal,
        });
      },
    );
  const { text } = options.request;
  return isLarge(text) ? largeWork.run(steps, target.signal).then(sendEncoded) : sendEncoded(atOnce(steps));
}

/** It lasts as long as a stream: made where the request is in scope, it would keep that and the encoded body in memory. */
function wordingOf(channel: Channel, lent: readonly string[] | undefined, upstreamModel: string, model: string): Wording {
  return (error) => quotingNoCredentials(namingModel(blamed(error, upstreamModel, model), upstreamModel, model), channel, lent);
}

function blamed(error: GatewayError, upstreamModel: string, model: string): GatewayError {
  return namesOtherModels(error, [upstreamModel, model]) ? byClient(error) : error;
}

interface Encoded {
  /** As it was asked of the upstream. */
  readonly request: CanonicalRequest;
  readonly encoded: UpstreamRequest;
}

function* encodeInSteps(
  codec: UpstreamCodec,
  asked: CanonicalRequest | Steps<CanonicalRequest>,
  target: Parameters<UpstreamCodec['encodeInSteps']>[1],
): Steps<Encoded> {
  const request = 'next' in asked ? yield* asked : asked;
  const encoded = yield* codec.encodeInSteps(request, target);
  // A long body that was put together is copied when it is sent: in a turn of its own.
  if (encoded.body.length > LONG_CHARS) yield;
  return { request, encoded };
}

/**
 * A client that speaks messages sends its own version and betas to a messages upstream; betas that the request needs are added.
 */
function protocolHeaders(
  encoded: Readonly<Record<string, string>>,
  options: TextAttemptOptions,
  codec: UpstreamCodec,
): Record<string, string> {
  const headers: Record<string, string> = { ...encoded };
  if (options.request.dialect !== 'messages' || codec.dialect !== 'messages') return headers;
  const { 'anthropic-version': version, 'anthropic-beta': betas } = options.call.request.headers;
  if (typeof version === 'string' && version !== '') headers['anthropic-version'] = version;
  if (typeof betas === 'string' && betas !== '') headers['anthropic-beta'] = joinList(betas, encoded['anthropic-beta'] ?? '');
  return headers;
}

/**
 * Reads by content type: JSON is a whole answer or an error, HTML is refused, anything else is read as a stream, which rejects
 * what is not one.
 */
function openSource(sent: Sent, options: TextAttemptOptions): AnswerSource | Promise<AnswerSource> {
  const { codec, context, head, timers, framing } = sent;
  const { gateway, config } = options.call;
  const type = contentTypeOf(head);
  if (type === 'text/html') return refusePage(head, gateway.clock);
  if (type === 'application/json') return openWhole(sent, options);
  return new AnswerStream(head.body, stoppingDecoder(codec.decodeEvents(context), sent.encoded.ownStops), {
    clock: gateway.clock,
    maxEventBytes: config.limits.eventBytes,
    maxBytes: config.limits.answerBytes,
    timers,
    word: sent.word,
    framing,
    work: gateway.largeWork,
  });
}

async function refusePage(head: UpstreamHead, clock: Clock): Promise<never> {
  const text = await readErrorText(head, clock);
  throw upstreamFault('undecodable', 'The upstream answered with a web page.', { status: head.status, text });
}

async function openWhole(sent: Sent, options: TextAttemptOptions): Promise<AnswerSource> {
  const { step, length } = await decodeWhole(sent, options);
  return wholeAsSource(step, sent.word, length);
}

async function decodeWhole(
  { codec, context, encoded, head, timers, signal }: Sent,
  { call }: TextAttemptOptions,
): Promise<{ readonly step: Step; readonly length: number }> {
  const { largeWork } = call.gateway;
  const text = await readBody(head, call.config.limits.answerBytes, largeWork);
  // All of it has arrived.
  timers.stop();
  const decoded = largeWork.of(text, codec.decodeResponseInSteps(text, context), signal);
  const step = stoppedStep(decoded instanceof Promise ? await decoded : decoded, encoded.ownStops);
  return { step, length: text.length };
}

async function readUntilCommit(source: AnswerSource, { call, party }: TextAttemptOptions): Promise<Step[]> {
  const turns = call.gateway.streamTurns;
  const held: Step[] = [];
  for (let seen = 0; ; ) {
    let failure: unknown;
    let broken = false;
    const entered = turns.enter(party);
    if (entered !== undefined) await entered;
    try {
      if (!source.take(held)) {
        await arrival(source);
        continue;
      }
    } catch (thrown) {
      broken = true;
      failure = thrown;
    }
    const committed = held.slice(seen).some(commits);
    seen = held.length;
    throwEarlyFailure(held);
    if (committed) return held;
    if (broken) throw failure;
    if (source.ended) throw upstreamFault('empty', 'The upstream ended without an answer.');
  }
}

/** Throws the failure of an answer that has neither said nor done anything: another Channel may still answer. */
function throwEarlyFailure(steps: readonly Step[]): void {
  for (const { events, acts } of steps) {
    if (acts === true) return;
    for (const event of events) {
      if (event.type === 'item.start') return;
      if (event.type === 'response.end' && (event.outcome.status === 'failed' || event.outcome.status === 'cancelled')) {
        throw havingUsed(event.outcome.error, usageBeside(events));
      }
    }
  }
}

/**
 * The usage reported with the failure itself. An earlier report knows the input only, and input without an answer is not charged.
 */
function usageBeside(events: Step['events']): Usage | undefined {
  const report = events.findLast((event) => event.type === 'usage.report');
  return report === undefined || isPlaceholder(report.usage) ? undefined : report.usage;
}

async function readToEnd(source: AnswerSource): Promise<readonly Step[]> {
  const steps: Step[] = [];
  while (!source.ended) if (!source.take(steps)) await arrival(source);
  return steps;
}

function arrival(source: AnswerSource): Promise<void> {
  return new Promise((resolve) => source.ready(resolve));
}

/** Of an answer that has ended, which the order has checked. */
function wholeOf(fold: Fold): Whole {
  const { outcome } = fold;
  if (outcome === undefined) throw new Error('an answer without an outcome passed the order');
  return fold.whole(outcome);
}
