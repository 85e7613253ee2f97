/** The handler of each endpoint of `server/route-table.ts`: one without a handler does not compile. */
import type { Handler } from '../gateway.ts';
import { serveImages } from '../images/serve-images.ts';
import type { RouteName } from '../server/route-table.ts';
import { codingBalance, userBalance } from './balance.ts';
import { compact } from './compact.ts';
import { embeddings } from './embeddings.ts';
import { model, models } from './models.ts';
import { readyz } from './readyz.ts';
import { chatCompletions, completions, messages, responses } from './text.ts';
import { usage } from './usage.ts';
import { video, videoCancel, videos } from './videos.ts';

export const HANDLERS: Readonly<Record<RouteName, Handler>> = {
  chat_completions: chatCompletions,
  responses,
  responses_compact: compact,
  messages,
  completions,
  embeddings,
  image_generations: (call) => serveImages(call, 'generation'),
  image_edits: (call) => serveImages(call, 'edit'),
  videos,
  video,
  video_cancel: videoCancel,
  models,
  model,
  usage,
  user_balance: userBalance,
  coding_balance: codingBalance,
  readyz,
};
