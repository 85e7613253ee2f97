/** The reference of images and videos. */
import { Type } from 'typebox';
import type { EndpointReference } from './endpoint.ts';
import { ADMISSION_ERRORS, INFERENCE_ERRORS, KEY_ERRORS } from './errors.ts';
import { ref } from './shared-schemas.ts';

const IMAGES = 'Images';
const VIDEOS = 'Videos';
const more = { additionalProperties: true } as const;
const model = Type.String({ description: 'One of the names listed by `/v1/models`.' });

const imageFields = {
  model,
  prompt: Type.String({ minLength: 1 }),
  n: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 10,
      description: 'Each image is an upstream request of its own. With `stream` only 1 is possible.',
    }),
  ),
  size: Type.Optional(Type.String({ description: 'e.g. `1024x1024`.' })),
  quality: Type.Optional(Type.String()),
  background: Type.Optional(Type.String()),
  output_format: Type.Optional(Type.String({ description: 'e.g. `png`.' })),
  stream: Type.Optional(
    Type.Boolean({ description: 'If true, finished images come as events, without previews. Omit it for one JSON answer.' }),
  ),
  style: Type.Optional(Type.String({ description: 'Refused on routes through a responses upstream.' })),
  response_format: Type.Optional(
    Type.String({ description: '`b64_json` or `url`; `url` is refused on routes through a responses upstream.' }),
  ),
};

const imageReference = Type.Object(
  {
    image_url: Type.Optional(Type.String({ description: 'HTTP(S) URL or Base64 data URL.' })),
    file_id: Type.Optional(
      Type.String({ description: 'The upstream that is chosen must be able to read it with its credential.' }),
    ),
  },
  { minProperties: 1, maxProperties: 1, additionalProperties: false, description: 'Exactly one of the two fields.' },
);

const imageAnswer = Type.Object(
  {
    created: Type.Integer(),
    data: Type.Array(
      Type.Object({
        b64_json: Type.Optional(Type.String()),
        url: Type.Optional(Type.String()),
        revised_prompt: Type.Optional(Type.String()),
      }),
    ),
    quality: Type.Optional(
      Type.String({
        description:
          'Like `size`, `background`, `output_format` and `model`, this is what the upstream reported, if all images agree.',
      }),
    ),
    usage: Type.Optional(Type.Object({}, more)),
  },
  more,
);

const imageResponses = [
  { status: 200, text: 'The images.', contentType: 'application/json', schema: imageAnswer },
  {
    status: 200,
    text: 'With `stream: true`: events. A comment comes at once, and by default after every 15 seconds of silence.',
    contentType: 'text/event-stream',
  },
] as const;

const imageEvents = (name: string) => [
  { name, text: 'The image as `b64_json` or `url`, with the metadata that the upstream reported.' },
  { name: 'error', text: 'A failure.' },
  { name: 'data: [DONE]', text: 'The end, after an image and after an error alike.' },
];

const IMAGE_ERRORS = [...INFERENCE_ERRORS, 'unsupported_media_type', 'unsupported_parameter', 'unsupported_conversion'] as const;
const VIDEO_ERRORS = [...KEY_ERRORS, 'video_primary_required'] as const;

const taskId = Type.Object({ id: Type.String({ description: 'The id of the task, `video_…`.' }) });

export const MEDIA_ENDPOINTS: readonly EndpointReference[] = [
  {
    id: 'create-image',
    group: IMAGES,
    method: 'POST',
    path: '/v1/images/generations',
    aliasRule: 'synchronous',
    title: 'Generate images',
    summary: 'Images from a prompt.',
    auth: 'key',
    bodies: [{ contentType: 'application/json', schema: Type.Object(imageFields, more) }],
    responses: imageResponses,
    events: imageEvents('image_generation.completed'),
    errors: IMAGE_ERRORS,
  },
  {
    id: 'edit-image',
    group: IMAGES,
    method: 'POST',
    path: '/v1/images/edits',
    aliasRule: 'synchronous',
    title: 'Edit images',
    summary: 'Images from a prompt and 1 to 16 source images, as a form or as JSON.',
    auth: 'key',
    rules: [
      'A mask is passed on together with its source image; its size and transparency are kept.',
      'Files are not copied between upstreams. A `file_id` works only if the chosen upstream knows it.',
      '`POST /v1/images/variations` does not exist.',
    ],
    bodies: [
      {
        contentType: 'multipart/form-data',
        schema: Type.Object(
          {
            ...imageFields,
            'image[]': Type.Array(Type.Unsafe<string>({ type: 'string', format: 'binary' }), {
              minItems: 1,
              maxItems: 16,
              description: 'The source images. A single one may be called `image`.',
            }),
            mask: Type.Optional(Type.Unsafe<string>({ type: 'string', format: 'binary', description: 'PNG, at most one.' })),
          },
          more,
        ),
      },
      {
        contentType: 'application/json',
        schema: Type.Object(
          {
            ...imageFields,
            images: Type.Array(imageReference, { minItems: 1, maxItems: 16 }),
            mask: Type.Optional(imageReference),
          },
          more,
        ),
      },
    ],
    responses: imageResponses,
    events: imageEvents('image_edit.completed'),
    errors: IMAGE_ERRORS,
  },
  {
    id: 'create-video',
    group: VIDEOS,
    method: 'POST',
    path: '/v1/videos',
    aliasRule: 'none',
    title: 'Create a video task',
    summary: 'Orders a video. Its fixed price is held now, and either charged on success or given back on failure.',
    auth: 'key',
    rules: [
      'If a request may have been lost, repeat it with the same `Idempotency-Key`. It finds the same task, and nothing is held twice.',
      'There are no callbacks: poll the task every 5 seconds. Whether a model can do what you ask is decided by its upstream.',
      'Only the primary node takes video requests. Video paths keep their `/v1` and have no aliases.',
    ],
    headers: [{ name: 'Idempotency-Key', required: true, text: 'A new one for each video; the same one when you retry.' }],
    bodies: [
      {
        contentType: 'application/json',
        schema: Type.Object(
          {
            model: Type.String({ description: 'A video model that `/v1/models` lists.' }),
            prompt: Type.Optional(Type.String()),
            duration: Type.Optional(Type.Integer({ minimum: 1, maximum: 60, description: 'Seconds.' })),
            resolution: Type.Optional(Type.String({ description: 'e.g. `768P`.' })),
            aspect_ratio: Type.Optional(Type.String({ description: 'e.g. `16:9`.' })),
            input: Type.Optional(
              Type.Array(
                Type.Object(
                  {
                    type: Type.Enum(['image', 'video', 'audio']),
                    url: Type.String({ description: 'HTTP or HTTPS.' }),
                    role: Type.Optional(
                      Type.Enum(['first_frame', 'last_frame', 'reference_image', 'reference_video', 'reference_audio']),
                    ),
                  },
                  { additionalProperties: false },
                ),
                { maxItems: 50 },
              ),
            ),
            provider_options: Type.Optional(
              Type.Object(
                {},
                {
                  ...more,
                  description:
                    'Depending on the upstream: `seed`, `generate_audio`, `watermark`, `camera_fixed`, `return_last_frame`, `service_tier`, `execution_expires_after`, `output_format`; or `prompt_optimizer`, `fast_pretreatment`; or `extra`.',
                },
              ),
            ),
          },
          { additionalProperties: false, description: 'At most 1 MiB. Unknown fields are refused.' },
        ),
      },
    ],
    responses: [
      {
        status: 202,
        text: 'The task. The header `Location` has its path.',
        contentType: 'application/json',
        schema: ref('VideoTask'),
      },
    ],
    errors: [
      ...ADMISSION_ERRORS,
      'unsupported_parameter',
      'idempotency_key_required',
      'idempotency_key_reused',
      'unsupported_media_type',
      'video_primary_required',
    ],
  },
  {
    id: 'read-video',
    group: VIDEOS,
    method: 'GET',
    path: '/v1/videos/{id}',
    aliasRule: 'none',
    title: 'Read a video task',
    summary: 'The current state of the task. Poll every 5 seconds, with the key that created it.',
    auth: 'key',
    pathParameters: taskId,
    responses: [{ status: 200, text: 'The task.', contentType: 'application/json', schema: ref('VideoTask') }],
    errors: [...VIDEO_ERRORS, 'video_not_found'],
  },
  {
    id: 'list-videos',
    group: VIDEOS,
    method: 'GET',
    path: '/v1/videos',
    aliasRule: 'none',
    title: 'List video tasks',
    summary: 'The tasks of this key, newest first.',
    auth: 'key',
    query: Type.Object({
      limit: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'The number of tasks on a page.' }),
      ),
      after: Type.Optional(Type.String({ description: 'The `next_cursor` of the previous page.' })),
    }),
    responses: [
      {
        status: 200,
        text: 'A page of tasks.',
        contentType: 'application/json',
        schema: Type.Object({
          object: Type.Literal('list'),
          data: Type.Array(ref('VideoTask')),
          has_more: Type.Boolean(),
          next_cursor: Type.Union([Type.String(), Type.Null()]),
        }),
      },
    ],
    errors: [...VIDEO_ERRORS, 'invalid_request'],
  },
  {
    id: 'cancel-video',
    group: VIDEOS,
    method: 'POST',
    path: '/v1/videos/{id}/cancel',
    aliasRule: 'none',
    title: 'Cancel a video task',
    summary: 'Cancels a task whose submission has not begun, and gives back what was held.',
    auth: 'key',
    pathParameters: taskId,
    responses: [{ status: 200, text: 'The cancelled task.', contentType: 'application/json', schema: ref('VideoTask') }],
    errors: [...VIDEO_ERRORS, 'video_not_found', 'video_submission_started'],
  },
];
