/** The reference of embeddings, legacy completions and the account's endpoints. */
import { Type } from 'typebox';
import type { EndpointReference } from './endpoint.ts';
import { INFERENCE_ERRORS, KEY_ERRORS } from './errors.ts';

const TEXT = 'Embeddings and completions';
const ACCOUNT = 'Account';
const more = { additionalProperties: true } as const;
const model = Type.String({ description: 'One of the names listed by `/v1/models`.' });
const modelEntry = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal('model'),
    created: Type.Integer({ description: 'When the gateway read its configuration, in seconds since 1970.' }),
    owned_by: Type.String(),
    type: Type.Literal('model'),
    display_name: Type.String(),
    created_at: Type.String({ format: 'date-time', description: 'The same time as `created`.' }),
  },
  { description: 'Has the members that the SDKs of OpenAI and of Anthropic read.' },
);
export const TEXT_ENDPOINTS: readonly EndpointReference[] = [
  {
    id: 'create-embedding',
    group: TEXT,
    method: 'POST',
    path: '/v1/embeddings',
    aliasRule: 'synchronous',
    title: 'Create embeddings',
    summary: 'Turns texts into vectors.',
    auth: 'key',
    bodies: [
      {
        contentType: 'application/json',
        schema: Type.Object(
          {
            model,
            input: Type.Union(
              [
                Type.String(),
                Type.Array(Type.String()),
                Type.Array(Type.Integer({ minimum: 0 })),
                Type.Array(Type.Array(Type.Integer({ minimum: 0 }))),
              ],
              { description: 'Texts, or token ids (upstreams of the chat and responses types).' },
            ),
            encoding_format: Type.Optional(Type.Enum(['float', 'base64'])),
            dimensions: Type.Optional(Type.Integer({ minimum: 1 })),
          },
          { ...more, description: 'There is no streaming.' },
        ),
      },
    ],
    responses: [
      {
        status: 200,
        text: 'The vectors.',
        contentType: 'application/json',
        schema: Type.Object({
          object: Type.Literal('list'),
          data: Type.Array(
            Type.Object({
              object: Type.Literal('embedding'),
              index: Type.Integer(),
              embedding: Type.Union([Type.Array(Type.Number()), Type.String()], {
                description: 'With `base64`: little-endian 32-bit floats.',
              }),
            }),
          ),
          model: Type.String(),
          usage: Type.Object({ prompt_tokens: Type.Integer(), total_tokens: Type.Integer() }),
        }),
      },
    ],
    errors: INFERENCE_ERRORS,
  },
  {
    id: 'create-completion',
    group: TEXT,
    method: 'POST',
    path: '/v1/completions',
    aliasRule: 'synchronous',
    title: 'Create a completion',
    summary: 'Legacy text completion. It is turned into one chat-completions request.',
    auth: 'key',
    rules: ['`suffix`, `echo`, `best_of` and `logprobs` are refused with 400.'],
    bodies: [
      {
        contentType: 'application/json',
        schema: Type.Object(
          {
            model,
            prompt: Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1, maxItems: 1 })]),
            max_tokens: Type.Optional(Type.Integer({ minimum: 1 })),
            stream: Type.Optional(Type.Boolean()),
          },
          more,
        ),
      },
    ],
    responses: [
      {
        status: 200,
        text: 'The completion.',
        contentType: 'application/json',
        schema: Type.Object(
          {
            object: Type.Literal('text_completion'),
            choices: Type.Array(Type.Object({ text: Type.String(), index: Type.Integer(), finish_reason: Type.String() }, more)),
          },
          more,
        ),
      },
      { status: 200, text: 'With `stream: true`: chunks of the same shape.', contentType: 'text/event-stream' },
    ],
    events: [
      { name: 'data: {"object":"text_completion"}', text: 'A piece of text.' },
      { name: 'data: [DONE]', text: 'The good ending.' },
      { name: 'data: {"error"}', text: 'A failure; the stream then closes.' },
    ],
    errors: [...INFERENCE_ERRORS, 'response_not_representable', 'cancelled'],
  },
];

export const ACCOUNT_ENDPOINTS: readonly EndpointReference[] = [
  {
    id: 'list-models',
    group: ACCOUNT,
    method: 'GET',
    path: '/v1/models',
    aliasRule: 'synchronous',
    title: 'List models',
    summary: 'The models that this key may use.',
    auth: 'key',
    responses: [
      {
        status: 200,
        text: 'The list.',
        contentType: 'application/json',
        schema: Type.Object({
          object: Type.Literal('list'),
          data: Type.Array(modelEntry),
          has_more: Type.Literal(false),
          first_id: Type.Union([Type.String(), Type.Null()]),
          last_id: Type.Union([Type.String(), Type.Null()]),
        }),
      },
    ],
    errors: KEY_ERRORS,
  },
  {
    id: 'read-model',
    group: ACCOUNT,
    method: 'GET',
    path: '/v1/models/{id}',
    aliasRule: 'synchronous',
    title: 'Read a model',
    summary: 'One entry of the list.',
    auth: 'key',
    pathParameters: Type.Object({
      id: Type.String({ description: 'The name of the model, percent-encoded or not. It may contain slashes.' }),
    }),
    responses: [{ status: 200, text: 'The model.', contentType: 'application/json', schema: modelEntry }],
    errors: [...KEY_ERRORS, 'model_not_allowed', 'model_not_found'],
  },
  {
    id: 'read-balance',
    group: ACCOUNT,
    method: 'GET',
    path: '/user/balance',
    aliasRule: 'none',
    title: 'Read the balance',
    summary: 'The balance of the key’s own sub-account if it has one, else of the account. Free of charge.',
    auth: 'key',
    rules: ['This path has no alias.'],
    responses: [
      {
        status: 200,
        text: 'The balance.',
        contentType: 'application/json',
        schema: Type.Object({
          is_available: Type.Boolean(),
          balance_infos: Type.Array(
            Type.Object({
              currency: Type.Literal('USD'),
              total_balance: Type.String({ description: 'A decimal string, like the next two.' }),
              granted_balance: Type.String(),
              topped_up_balance: Type.String(),
            }),
          ),
        }),
      },
    ],
    errors: KEY_ERRORS,
  },
  {
    id: 'read-usage',
    group: ACCOUNT,
    method: 'GET',
    path: '/api/codex/usage',
    aliasRule: 'none',
    title: 'Read the balance, for Codex',
    summary: 'The same balance in the form that Codex reads.',
    auth: 'key',
    rules: ['This path has no alias.'],
    responses: [
      {
        status: 200,
        text: 'The balance in `credits.balance`.',
        contentType: 'application/json',
        schema: Type.Object(
          { credits: Type.Object({ balance: Type.String({ description: 'US dollars as a decimal string.' }) }, more) },
          more,
        ),
      },
    ],
    errors: KEY_ERRORS,
  },
  {
    id: 'read-spend',
    group: ACCOUNT,
    method: 'GET',
    path: '/v1/usage',
    aliasRule: 'synchronous',
    title: 'Read the usage of a key by day, hour or model',
    summary:
      'Requests, tokens and charges of the calling key for each UTC day, hour or model. Free of charge. The page `/account` shows the same.',
    auth: 'key',
    query: Type.Object({
      from: Type.Optional(
        Type.String({
          description: 'The first day, for example 2026-03-01. Default: the oldest that is kept; by hour, six days before `to`.',
        }),
      ),
      to: Type.Optional(Type.String({ description: 'The last day, inclusive. Default: today.' })),
      group_by: Type.Optional(
        Type.Union(
          ['day', 'hour', 'model', 'day,model', 'hour,model'].map((name) => Type.Literal(name)),
          { description: 'What one entry of the answer is. Default: `day`. By hour 31 days are answered at most.' },
        ),
      ),
      model: Type.Optional(Type.String({ description: 'Counts the requests of this model only.' })),
    }),
    responses: [
      {
        status: 200,
        text: 'One entry for each day, hour or model with requests, oldest first, then by model.',
        contentType: 'application/json',
        schema: Type.Object({
          object: Type.Literal('list'),
          currency: Type.Literal('USD'),
          data: Type.Array(
            Type.Object({
              day: Type.Optional(Type.String({ description: 'Grouped by day, or by nothing that is named.' })),
              hour: Type.Optional(Type.String({ description: 'Grouped by hour: when it begins, `2026-03-01T12:00:00Z`.' })),
              model: Type.Optional(
                Type.String({ description: 'Grouped by model; empty for requests that were refused before a model was asked.' }),
              ),
              requests: Type.Integer(),
              errors: Type.Optional(
                Type.Integer({
                  description: 'The part of `requests` that failed; present where `group_by` or `model` is given.',
                }),
              ),
              input_tokens: Type.Integer({
                description: 'Tokens neither read from nor written to a cache; those have counters of their own.',
              }),
              cached_input_tokens: Type.Integer(),
              cache_write_tokens: Type.Integer(),
              output_tokens: Type.Integer(),
              reasoning_tokens: Type.Integer({ description: 'The part of `output_tokens` that was reasoning.' }),
              images: Type.Integer(),
              videos: Type.Integer(),
              charged: Type.String({ description: 'US dollars as a decimal string.' }),
            }),
          ),
        }),
      },
    ],
    errors: [...KEY_ERRORS, 'invalid_request'],
  },
];
