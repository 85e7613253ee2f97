/** Logs what the client's dialect cannot say of an answer, as the losses of a request are logged. */
import { droppedOf } from '../../codecs/canonical/answer-features.ts';
import type { Whole } from '../../codecs/canonical/fold.ts';
import type { ClientCodec } from '../../codecs/codec.ts';
import type { Channel } from '../config/config.ts';
import type { CallContext } from '../gateway.ts';

/** Reads the answer only at log level `debug`. */
export function logAnswerLosses(
  { gateway, requestId }: CallContext,
  client: ClientCodec,
  { type }: Channel,
  answer: () => Whole,
): void {
  if (!gateway.log.isLevelEnabled('debug') || gateway.codecs.upstream(type)?.dialect === client.dialect) return;
  const { items, ...rest } = answer();
  const answer_losses = droppedOf({ ...rest, items: items.map(({ item }) => item) }, client.losses);
  if (answer_losses.length > 0) gateway.log.debug({ request_id: requestId, answer_losses }, 'conversion losses');
}
