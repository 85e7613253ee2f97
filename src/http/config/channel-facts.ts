/** What the gateway must know of each Channel type beside its codec and its options. */
import type { ChannelType } from '../../codecs/canonical/dialect.ts';
import type { AuthStyle } from './config.ts';

export interface ChannelFacts {
  /** How its key is sent where `options.auth` is absent. */
  readonly auth: AuthStyle;
  /** Its name in traces (`gen_ai.provider.name`). */
  readonly provider: string;
}

export const CHANNEL_FACTS: Readonly<Record<ChannelType, ChannelFacts>> = {
  chat_completion: { auth: 'bearer', provider: 'openai' },
  responses: { auth: 'bearer', provider: 'openai' },
  messages: { auth: 'x-api-key', provider: 'anthropic' },
  gemini: { auth: 'x-goog-api-key', provider: 'gcp.gemini' },
  openai_image: { auth: 'bearer', provider: 'openai' },
  openrouter_image: { auth: 'bearer', provider: 'openrouter' },
  ark_video: { auth: 'bearer', provider: 'ark' },
  minimax_video: { auth: 'bearer', provider: 'minimax' },
};
