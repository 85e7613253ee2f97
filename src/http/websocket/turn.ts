/**
 * One turn of a WebSocket: it is authenticated anew, the response that it continues is found, and from there on it is a request
 * like any other, answered in messages. Knows no order of turns; that is the session's.
 */
import { invalid } from '../../codecs/canonical/error.ts';
import { type ClientCodec, type Frame, framesOf } from '../../codecs/codec.ts';
import type { Principal } from '../../store/keys.ts';
import { identify } from '../request/authenticate.ts';
import type { JsonBody } from '../request/body.ts';
import type { KeySlot } from '../request/key-slots.ts';
import { Committed, type Reply } from '../exchange/reply.ts';
import { goneBecause } from '../errors.ts';
import type { CallContext } from '../gateway.ts';
import { atClientPath } from '../history/client-path.ts';
import type { PastTurn } from '../history/past-turn.ts';
import { recall } from '../history/recall.ts';
import type { Answered } from '../history/remembering.ts';
import type { PreparedRequest } from '../text/prepared-request.ts';
import { answerText } from '../text/serve-text.ts';
import type { ClientEvent } from './client-event.ts';
import type { Continuation } from './continuation.ts';
import { eventText, type Spelling } from './event-text.ts';
import type { Outlet } from './outlet.ts';
import { type Steering, withItemsBefore } from './steering.ts';
import type { SocketLink } from './upstream-link.ts';
import type { Version } from './version.ts';
import { warmUp } from './warm-up.ts';

/** What makes a turn. */
export type TurnEvent = ClientEvent & { readonly kind: 'create' | 'append' };

export interface TurnOptions {
  readonly call: CallContext;
  readonly codec: ClientCodec;
  readonly event: TurnEvent;
  /** What its message takes of its key. */
  readonly slot: KeySlot;
  readonly version: Version;
  /** The stream id that the client sent. */
  readonly streamId: string | undefined;
  readonly outlet: Outlet;
  readonly continuation: Continuation;
  readonly steering: Steering;
  readonly link: SocketLink;
  /** The last event is about to be sent: the client may send its next turn before this one is settled. */
  readonly onEnding: () => void;
}

const ENDINGS: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete', 'response.failed']);

const FAILURES: ReadonlySet<string> = new Set(['response.failed', 'error']);

/** Throws only before anything was sent. Resolves when the turn is settled. */
export async function answerTurn(options: TurnOptions): Promise<void> {
  const { call } = options;
  const principal = await identify(call);
  // It was cancelled while it waited for the turn before it: nothing is asked, reserved or counted.
  if (call.gone.aborted) throw goneBecause(call.gone);
  const place = call.gateway.keySlots.acquire(principal.key.id, 0, call.config.limits.key);
  try {
    await answerFor(principal, options);
  } finally {
    place.release();
  }
}

async function answerFor(principal: Principal, options: TurnOptions): Promise<void> {
  const { call, event, continuation } = options;
  const resumed = await (event.kind === 'create' ? continuation.resume(event) : continuation.append(event.input));
  const steers = options.steering.claim(resumed);
  const request =
    steers === undefined ? resumed : await call.gateway.largeWork.of(resumed.text, withItemsBefore(resumed, steers));
  const evict = (): void => {
    // A turn that the client cancelled, or that a drain ended, does no harm to what it continued.
    if (!call.gone.aborted) continuation.evict(request.json['previous_response_id']);
  };
  try {
    await answerRequest(principal, request, steers?.texts.length ?? 0, options, evict);
  } catch (thrown) {
    evict();
    throw thrown;
  }
}

/**
 * `itemsBefore`: of its input, those that the client has not sent now. `onFailure`: the answer ends in a failure that the client
 * is sent.
 */
async function answerRequest(
  principal: Principal,
  request: JsonBody,
  itemsBefore: number,
  options: TurnOptions,
  onFailure: () => void,
): Promise<void> {
  const { call, codec, event, slot, version, streamId, outlet, continuation, steering, link, onEnding } = options;
  const { gateway } = call;
  const generate = event.envelope['generate'] ?? true;
  // Whoever means a warm-up must not be charged for an answer.
  if (typeof generate !== 'boolean') throw invalid('generate', 'generate must be true or false.');
  const spelling: Spelling = { isV1: version === 'v1', streamId };
  const past = await continuation.find(principal, request);
  const onTurn = (turn: PastTurn, { responseId, status }: Answered): Promise<void> | undefined =>
    status === 'completed' || steering.goesOn ? continuation.retain(principal, turn, responseId, request) : undefined;
  const recalled = await recall({ gateway, principal, body: request, slot, past, onTurn });
  const own = recalled.own && { ...recalled.own, itemsBefore: recalled.own.itemsBefore + itemsBefore };
  const prepared: PreparedRequest = { ...recalled, stream: true, link, ...(own === undefined ? {} : { own }) };
  if (!generate) {
    const frames = await warmUp(call, codec, prepared).catch((thrown: unknown) => {
      throw atClientPath(thrown, prepared.own);
    });
    await outlet.writer().write(frames.map((frame) => eventText(frame, spelling)));
    return;
  }
  const spell = (frame: Frame): string => {
    if (FAILURES.has(frame.event ?? '')) onFailure();
    if (ENDINGS.has(frame.event ?? '')) onEnding();
    else if (frame.event === 'response.created') steering.responding(recalled.responseId ?? '', streamId);
    return eventText(frame, spelling);
  };
  const reply: Reply = {
    answer({ body }) {
      outlet.send(typeof body === 'string' ? body : Buffer.from(body).toString());
      return undefined;
    },
    commit: () => new Committed(outlet.writer(), (frames) => frames.flatMap(framesOf).map(spell)),
  };
  await answerText(call, codec, prepared, reply);
}
