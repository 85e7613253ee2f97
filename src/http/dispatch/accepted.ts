/** What the attempt loop hands over, and what is learnt of its Channel when it ends. */
import type { GatewayError } from '../../codecs/canonical/error.ts';
import type { Channel } from '../config/config.ts';
import type { Affinity } from './affinity.ts';
import type { Release } from './concurrency.ts';
import type { Permit } from './health.ts';
import { reportTo } from './verdict.ts';

/** An answer whose first output is in hand. Whoever holds it reports how it ended, once. */
export interface Accepted<Answer> {
  readonly answer: Answer;
  readonly channel: Channel;
  readonly upstreamModel: string;
  readonly affinityHit: boolean;
  /** The answer came to its good end. */
  succeeded(): void;
  /** It broke after it was shown; client faults and clients that left teach nothing. */
  failed(error: GatewayError): void;
}

export class AcceptedAnswer<Answer> implements Accepted<Answer> {
  readonly answer: Answer;
  readonly channel: Channel;
  readonly upstreamModel: string;
  readonly affinityHit: boolean;
  readonly #permit: Permit;
  readonly #release: Release;
  readonly #affinity: Affinity;
  readonly #conversation: string | undefined;

  constructor(
    { answer, channel, upstreamModel, affinityHit }: Omit<Accepted<Answer>, 'succeeded' | 'failed'>,
    permit: Permit,
    release: Release,
    affinity: Affinity,
    conversation: string | undefined,
  ) {
    this.answer = answer;
    this.channel = channel;
    this.upstreamModel = upstreamModel;
    this.affinityHit = affinityHit;
    this.#permit = permit;
    this.#release = release;
    this.#affinity = affinity;
    this.#conversation = conversation;
  }

  succeeded(): void {
    this.#release();
    this.#permit.succeeded();
    if (this.#conversation !== undefined) this.#affinity.succeeded(this.#conversation, this.channel.id);
  }

  failed(error: GatewayError): void {
    this.#release();
    reportTo(this.#permit, error);
    if (this.#conversation !== undefined && error.blame === 'upstream')
      this.#affinity.failed(this.#conversation, this.channel.id);
  }
}
