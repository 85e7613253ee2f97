/** The protocols by their names inside the gateway, and the Channel types that speak them. */

/** The protocols of text conversations. `completions` is a client's protocol only, `gemini` an upstream's only. */
export type Dialect = 'chat' | 'responses' | 'messages' | 'gemini' | 'completions';

export const CHANNEL_TYPES = [
  'chat_completion',
  'responses',
  'messages',
  'gemini',
  'openai_image',
  'openrouter_image',
  'ark_video',
  'minimax_video',
] as const;
export type ChannelType = (typeof CHANNEL_TYPES)[number];
