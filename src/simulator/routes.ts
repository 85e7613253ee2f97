/** Which endpoint answers which path of the simulated upstream. Adds no meaning of its own. */
import { type Answer, bytesAnswer, jsonAnswer } from './answer.ts';
import { ARK_TASKS, answerArk } from './ark-video.ts';
import { chat } from './chat.ts';
import type { Dialect } from './dialect.ts';
import { answerEmbeddings } from './embeddings.ts';
import { gemini } from './gemini.ts';
import { answerImages } from './images.ts';
import type { ReceivedRequest } from './journal.ts';
import { isObject } from './json.ts';
import { messages } from './messages.ts';
import { answerMinimax } from './minimax-video.ts';
import { answerRouterImages, answerRouterModels } from './openrouter-images.ts';
import { makePng } from './png.ts';
import { seedOf } from './random.ts';
import { answerCompact, responses } from './responses.ts';
import type { Script } from './script.ts';
import { answerText, malformedBody, turnOf } from './text-route.ts';
import { openAiError, VendorError } from './vendor-error.ts';
import { tinyVideo } from './video-jobs.ts';
import type { SimulatorContext } from './context.ts';

const GEMINI = /^\/v1(?:beta)?\/models\/[^/:]+:(generateContent|streamGenerateContent)$/;

/** The text dialect that a path speaks; images and embeddings fail in chat's shape. */
export function dialectOf(path: string): Dialect {
  if (path.endsWith('/messages')) return messages;
  if (GEMINI.test(path)) return gemini;
  return /\/responses(\/compact)?$/.test(path) ? responses : chat;
}

/** A router's base ends in `/api`; a Channel may carry its own prefix before `/v1`. */
export function plainPath(path: string): string {
  return path.replace(/^\/api(?=\/v1\/)/, '');
}

export function answerRoute(
  request: ReceivedRequest,
  script: Script | undefined,
  context: SimulatorContext,
  models: readonly string[],
): Answer {
  const path = plainPath(request.path);
  const { method } = request;
  const known =
    method === 'GET'
      ? answerGet(path, models, context)
      : method === 'POST'
        ? answerPost(path, request, script, context)
        : undefined;
  if (known !== undefined) return known;
  if (path.startsWith(ARK_TASKS)) return answerArk(request, script, context);
  const video = answerMinimax({ ...request, path }, script, context);
  if (video !== undefined) return video;
  const error = new VendorError(404, `Invalid URL (${method} ${request.path})`, { type: 'invalid_request_error' });
  return jsonAnswer(404, dialectOf(path).failure(error, { mint: context.mint }));
}

function answerPost(
  path: string,
  request: ReceivedRequest,
  script: Script | undefined,
  context: SimulatorContext,
): Answer | undefined {
  const asked = isObject(request.body) && request.body.stream === true;
  switch (path) {
    case '/v1/chat/completions':
      return answerText(chat, asked, request, script, context);
    case '/v1/responses':
      return answerText(responses, asked, request, script, context);
    case '/v1/messages':
      return answerText(messages, asked, request, script, context);
    case '/v1/responses/compact':
      return compact(request, context);
    case '/v1/embeddings':
      return answerEmbeddings(request);
    case '/v1/images/generations':
      return answerImages('generation', request, script, context);
    case '/v1/images/edits':
      return answerImages('edit', request, script, context);
    case '/v1/images':
      return answerRouterImages(request, script, context);
  }
  const [, verb] = GEMINI.exec(path) ?? [];
  if (verb === undefined) return undefined;
  return answerText(gemini, verb === 'streamGenerateContent', request, script, context);
}

function compact(request: ReceivedRequest, context: SimulatorContext): Answer {
  const turn = turnOf(request, context);
  const headers = responses.headers(context.mint('req_'));
  try {
    if (!isObject(request.body)) throw malformedBody(request.text);
    return jsonAnswer(200, answerCompact(turn), headers);
  } catch (error) {
    if (!(error instanceof VendorError)) throw error;
    return jsonAnswer(error.status, openAiError(error), headers);
  }
}

function answerGet(path: string, models: readonly string[], context: SimulatorContext): Answer | undefined {
  const createdS = Math.floor(context.now() / 1000);
  if (path === '/v1/models') {
    const data = models.map((id) => ({ id, object: 'model', created: createdS, owned_by: 'simulator' }));
    return jsonAnswer(200, JSON.stringify({ object: 'list', data }));
  }
  if (path === '/v1beta/models') {
    const list = models.map((id) => ({
      name: `models/${id}`,
      displayName: id,
      inputTokenLimit: 1048576,
      outputTokenLimit: 65536,
      supportedGenerationMethods: ['generateContent'],
    }));
    return jsonAnswer(200, JSON.stringify({ models: list }, null, 2));
  }
  if (path === '/v1/images/models') return answerRouterModels(models, createdS);
  const [, id = '', ending] = /^\/files\/([\w-]+)\.(mp4|png)$/.exec(path) ?? [];
  if (context.videos.find(id) === undefined) return undefined;
  if (ending === 'png') return bytesAnswer(makePng({ width: 64, height: 36 }, seedOf(id), false), 'image/png');
  return bytesAnswer(tinyVideo(id), 'video/mp4');
}
