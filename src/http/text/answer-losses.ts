/** Names in the log what of an answer the client's dialect leaves out, as the losses of a request are named. */
import { droppedOf } from '../../codecs/canonical/answer-features.ts';
import type { Whole } from '../../codecs/canonical/fold.ts';
import type { ClientCodec } from '../../codecs/codec.ts';
import type { Channel } from '../config/config.ts';
import type { CallContext } from '../gateway.ts';

/** Looks at the answer only where the log's level asks for it. */
export function logAnswerLosses(
  { gateway, requestId }: CallContext,
  client: ClientCodec,
  { type }: Channel,
  answer: () => Whole,
): void {
  if (!gateway.log.isLevelEnabled('debug') || gateway.codecs.upstream(type)?.dialect === client.dialect) return;
  const { items, usage, outcome } = answer();
  const answer_losses = droppedOf({ items: items.map(({ item }) => item), usage, outcome }, client.losses);
  if (answer_losses.length > 0) gateway.log.debug({ request_id: requestId, answer_losses }, 'conversion losses');
}
