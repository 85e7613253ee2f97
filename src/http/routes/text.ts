/** The text endpoints: each is the same pipeline with its own client codec. */
import { GatewayError } from '../../codecs/canonical/error.ts';
import type { Dialect } from '../../codecs/canonical/dialect.ts';
import type { Handler } from '../gateway.ts';
import { findPrevious, recall } from '../history/recall.ts';
import { type Prepare, serveText } from '../text/serve-text.ts';

const speaking =
  (dialect: Dialect, prepare?: Prepare): Handler =>
  (call) =>
    serveText(call, call.gateway.codecs.client(dialect), prepare);

export const chatCompletions = speaking('chat');
export const messages = speaking('messages');
export const completions = speaking('completions');

const overHttp = speaking('responses', async ({ gateway }, principal, received) => {
  const past = await findPrevious(gateway, principal, received.json);
  return recall({ gateway, principal, body: received, slot: received.slot, past });
});

/** A `GET` that arrives here was no WebSocket upgrade. */
export const responses: Handler = async (call) => {
  if (call.method === 'GET') {
    call.response.setHeader('upgrade', 'websocket');
    throw new GatewayError('upgrade_required', 'Use POST, or upgrade to a WebSocket.');
  }
  await overHttp(call);
};
