/** The protocols by their names inside the gateway, and the Channel types that speak them. */

/** What a text conversation can be spoken in. `completions` exists on the client's side only, `gemini` upstream only. */
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
