/**
 * `generate: false`: the client sends its prompt ahead of a question and gets an id to continue from. The empty response is made
 * here; no upstream is called, and nothing is charged or logged as an exchange.
 */
import type { Step } from '../../codecs/canonical/event.ts';
import type { Opaque } from '../../codecs/canonical/opaque.ts';
import type { ClientCodec, Frame } from '../../codecs/codec.ts';
import { editJson } from '../../codecs/json/edit.ts';
import { checkModel } from '../exchange/admit.ts';
import type { CallContext } from '../gateway.ts';
import { NO_ITEMS } from '../history/past-turn.ts';
import type { PreparedRequest } from '../text/prepared-request.ts';

const EMPTY_ANSWER: Step = {
  events: [
    { type: 'response.start' },
    { type: 'usage.report', usage: { input: 0, output: 0 } },
    { type: 'response.end', outcome: { status: 'completed', stop: 'end' } },
  ],
};

/** Throws the refusals of a normal request, except those about money. The input may be left out. */
export async function warmUp(call: CallContext, codec: ClientCodec, prepared: PreparedRequest): Promise<readonly Frame[]> {
  const { gateway, config, startedAtMs } = call;
  const accountId = prepared.principal.account.id;
  const { text, json } = withInput(prepared);
  const decoding = codec.decodeInSteps(text, json, { open: gateway.envelopes.opener(accountId) });
  const decoded = await gateway.largeWork.of(text, decoding, call.gone);
  prepared.inspect?.(decoded);
  checkModel(config, prepared.principal, decoded.model, 'text');
  const previous = prepared.previousResponseId;
  const request = { ...decoded, stream: true, ...(previous === undefined ? {} : { previousResponseId: previous }) };
  const responseId = prepared.responseId ?? gateway.mint(codec.idPrefix);
  const frames: Frame[] = [];
  const context = {
    responseId,
    model: request.model,
    createdAt: Math.floor(startedAtMs / 1000),
    now: () => Math.floor(gateway.clock.now() / 1000),
    request,
    owner: { channelType: 'responses' as const, scope: '', model: request.model },
    seal: (opaque: Opaque) => gateway.envelopes.seal(opaque, accountId),
    mint: gateway.mint,
  };
  const steps = codec.encodeEventsInSteps?.(context);
  const encoder = await (steps === undefined ? codec.encodeEvents(context) : gateway.largeWork.of(text, steps, call.gone));
  encoder.push(EMPTY_ANSWER, frames);
  await prepared.remember?.({ responseId, status: 'completed', output: NO_ITEMS, itemIds: [], storedItems: new Map() });
  return frames;
}

function withInput({ text, json }: PreparedRequest): Pick<PreparedRequest, 'text' | 'json'> {
  const { input } = json;
  if (input !== undefined && input !== null) return { text, json };
  return { text: editJson(text, [{ path: ['input'], value: '[]' }]), json: { ...json, input: [] } };
}
