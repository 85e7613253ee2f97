/** The image router upstream: one endpoint for drawing and editing, and its list of models. */
import { type Answer, jsonAnswer, streamAnswer, withDone } from './answer.ts';
import { dataFrame } from './frame.ts';
import type { ReceivedRequest } from './journal.ts';
import { isArray, isObject, type JsonObject, objectOf, stringOf } from './json.ts';
import { coloursOf, makePng } from './png.ts';
import { seedOf } from './random.ts';
import { roughTokens } from './reply.ts';
import type { Script } from './script.ts';
import type { SimulatorContext } from './context.ts';

const FIELDS = new Set(
  (
    'model prompt n size input_references quality background output_format output_compression resolution aspect_ratio seed provider stream user ' +
    'session_id trace'
  ).split(' '),
);

export function answerRouterImages(request: ReceivedRequest, script: Script | undefined, context: SimulatorContext): Answer {
  const bad = (message: string) => jsonAnswer(400, JSON.stringify({ error: { code: 400, message } }));
  const { body } = request;
  if (!isObject(body)) return bad('Invalid JSON');
  if (stringOf(body.model) === '' || stringOf(body.prompt) === '') return bad('model and prompt are required');
  const unknown = Object.keys(body).find((name) => !FIELDS.has(name));
  if (unknown !== undefined) return bad(`Unrecognized key: "${unknown}"`);
  const { n = 1, input_references: references } = body;
  if (!Number.isInteger(n) || Number(n) < 1 || Number(n) > 10) return bad('n must be an integer between 1 and 10');
  if (references !== undefined) {
    if (!isArray(references) || references.length > 16) return bad('input_references must be an array of at most 16 entries');
    const wrong = references
      .map(objectOf)
      .some(({ type, image_url }) => type !== 'image_url' || !/^(https?:|data:)/.test(stringOf(objectOf(image_url).url)));
    if (wrong) return bad('input_references entries must be image_url with an http(s) or data URL');
  }
  const prompt = stringOf(body.prompt);
  const [, width = '1024', height = '1024'] = /^(\d+)x(\d+)$/.exec(stringOf(body.size)) ?? [];
  const scripted = (script?.reply?.pieces ?? []).flatMap((piece) => (piece.type === 'image' ? [piece] : []));
  const pictures =
    scripted.length > 0
      ? scripted.map(({ data }) => data)
      : Array.from({ length: Number(n) }, (_, index) =>
          makePng(
            { width: Number(width), height: Number(height) },
            seedOf(`${prompt}\n${index}`),
            body.background === 'transparent',
            coloursOf(prompt),
          ).toString('base64'),
        );
  const created = Math.floor(context.now() / 1000);
  const usage = usageFor(prompt, pictures.length, script);
  const headers = { 'x-generation-id': context.mint('gen-') };
  const media_type = scripted[0]?.mimeType ?? 'image/png';
  if (body.stream !== true) {
    return jsonAnswer(
      200,
      JSON.stringify({
        created,
        data: pictures.map((b64_json) => ({ b64_json, media_type })),
        ...(usage === null ? {} : { usage }),
      }),
      headers,
    );
  }
  const frames = pictures.map((b64_json) =>
    dataFrame(
      'terminal',
      JSON.stringify({ type: 'image_generation.completed', b64_json, media_type, created, ...(usage === null ? {} : { usage }) }),
    ),
  );
  const comment = { part: 'comment', text: ': OPENROUTER PROCESSING\n\n' } as const;
  return {
    ...streamAnswer(withDone([comment, ...frames]), 'text/event-stream', headers),
    failureFrame: (_before, error = { message: 'Generation failed', code: 'server_error' }) =>
      dataFrame('content', JSON.stringify({ type: 'error', error })),
  };
}

function usageFor(prompt: string, count: number, script: Script | undefined): JsonObject | null {
  const scripted = script?.reply?.usage;
  if (scripted === null) return null;
  const input = scripted?.input ?? Math.max(1, roughTokens(prompt));
  const output = scripted?.output ?? 1120 * count;
  const cost = Number((output * 0.00003).toFixed(8));
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    cost,
    is_byok: false,
    prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0, audio_tokens: 0, video_tokens: 0 },
    cost_details: { upstream_inference_cost: cost, upstream_inference_prompt_cost: 0, upstream_inference_completions_cost: cost },
    completion_tokens_details: { reasoning_tokens: 0, image_tokens: output },
    ...(scripted?.extra ?? {}),
  };
}

export function answerRouterModels(models: readonly string[], createdS: number): Answer {
  const data = models.map((id) => ({
    id,
    name: id,
    description: 'A simulated image model.',
    created: createdS,
    architecture: { input_modalities: ['text', 'image'], output_modalities: ['image'] },
    supported_parameters: { resolution: { type: 'enum', values: ['1K', '2K'] }, seed: { type: 'boolean' } },
    supports_streaming: true,
    endpoints: `/api/v1/images/models/${id}/endpoints`,
  }));
  return jsonAnswer(200, JSON.stringify({ data }));
}
