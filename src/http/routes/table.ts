/** Which handler answers which route. A route without one does not exist yet and is answered 404. */
import type { Handler } from '../gateway.ts';
import type { RouteName } from '../server/route-table.ts';
import { codingBalance, userBalance } from './balance.ts';
import { compact } from './compact.ts';
import { embeddings } from './embeddings.ts';
import { imageEdits, imageGenerations } from './images.ts';
import { models } from './models.ts';
import { readyz } from './readyz.ts';
import { chatCompletions, completions, messages, responses } from './text.ts';
import { usage } from './usage.ts';
import { video, videoCancel, videos } from './videos.ts';

export const HANDLERS: { readonly [Name in RouteName]?: Handler } = {
  chat_completions: chatCompletions,
  responses,
  responses_compact: compact,
  messages,
  completions,
  embeddings,
  image_generations: imageGenerations,
  image_edits: imageEdits,
  models,
  usage,
  user_balance: userBalance,
  coding_balance: codingBalance,
  readyz,
  videos,
  video,
  video_cancel: videoCancel,
};
