/** Schemas that several endpoints share. They become `components/schemas` of the OpenAPI document, and `ref` refers to them. */
import { Type } from 'typebox';

const nullableText = (description: string) => Type.Union([Type.String(), Type.Null()], { description });

export const SHARED_SCHEMAS = {
  Error: Type.Object(
    {
      error: Type.Object({
        message: Type.String({ description: 'For people. Never holds upstream addresses, keys or account names.' }),
        type: Type.String({ description: 'A class of errors, e.g. `invalid_request_error`.' }),
        param: nullableText('Path of the faulty field, e.g. `messages[0].content`.'),
        code: nullableText('For programs: a code of the table of errors.'),
      }),
    },
    { description: 'The error body of every protocol but messages.' },
  ),
  MessagesError: Type.Object(
    {
      type: Type.Literal('error'),
      error: Type.Object({
        type: Type.String({ description: 'e.g. `invalid_request_error`, `authentication_error`, `overloaded_error`.' }),
        message: Type.String(),
        code: Type.Optional(Type.String({ description: 'A code of the table of errors.' })),
      }),
      request_id: Type.String({ description: 'The same as the header `request-id`.' }),
    },
    { description: 'The error body of the messages protocol.' },
  ),
  ResponseUsage: Type.Object({
    input_tokens: Type.Integer(),
    input_tokens_details: Type.Object({ cached_tokens: Type.Integer() }),
    output_tokens: Type.Integer(),
    output_tokens_details: Type.Object({ reasoning_tokens: Type.Integer({ description: 'Part of `output_tokens`.' }) }),
    total_tokens: Type.Integer(),
  }),
  Response: Type.Object({
    id: Type.String({ pattern: '^resp_mizu_[0-9a-f]{32}$', description: '`resp_mizu_` and 32 hexadecimal digits.' }),
    object: Type.Literal('response'),
    status: Type.Enum(['completed', 'incomplete', 'failed']),
    incomplete_details: Type.Optional(
      Type.Union(
        [Type.Object({ reason: Type.String({ description: 'e.g. `max_output_tokens`, `content_filter`.' }) }), Type.Null()],
        {
          description: 'Why, when `status` is `incomplete`.',
        },
      ),
    ),
    error: Type.Optional(
      Type.Union([Type.Object({ code: Type.String(), message: Type.String() }), Type.Null()], {
        description: 'Why, when `status` is `failed`.',
      }),
    ),
    model: Type.String({ description: 'The name that you asked for.' }),
    output: Type.Array(Type.Ref('#/components/schemas/OutputItem'), {
      description: 'In the order in which the model produced it.',
    }),
    usage: Type.Optional(Type.Union([Type.Ref('#/components/schemas/ResponseUsage'), Type.Null()])),
  }),
  OutputItem: Type.Union([
    Type.Object({
      type: Type.Literal('message'),
      id: Type.String(),
      role: Type.Literal('assistant'),
      status: Type.String(),
      content: Type.Array(
        Type.Object({ type: Type.Literal('output_text'), text: Type.String(), annotations: Type.Array(Type.Object({})) }),
      ),
    }),
    Type.Object({
      type: Type.Literal('reasoning'),
      id: Type.String(),
      summary: Type.Array(Type.Object({ type: Type.Literal('summary_text'), text: Type.String() })),
      content: Type.Optional(Type.Array(Type.Object({}), { description: 'Raw reasoning text.' })),
      encrypted_content: Type.Optional(
        Type.String({
          description: 'Begins with `mz2.`. Send it back unchanged; it only reaches the kind of upstream that made it.',
        }),
      ),
    }),
    Type.Object({
      type: Type.Literal('function_call'),
      call_id: Type.String(),
      name: Type.String(),
      arguments: Type.String({ description: 'JSON text.' }),
    }),
    Type.Object({ type: Type.Literal('image_generation_call'), result: Type.String({ description: 'Base64 of the image.' }) }),
  ]),
  VideoTask: Type.Object({
    id: Type.String({ description: 'Begins with `video_`.' }),
    object: Type.Literal('video'),
    model: Type.String(),
    status: Type.Enum(['queued', 'submitting', 'running', 'succeeded', 'failed', 'cancelled', 'unknown'], {
      description: '`unknown`: the upstream may still have the task; ask the operator before you create it again.',
    }),
    created_at: Type.Integer({ description: 'Unix seconds.' }),
    updated_at: Type.Integer({ description: 'Unix seconds.' }),
    output: Type.Union([
      Type.Object({
        url: Type.String({ description: 'The upstream’s link. It expires: fetch it promptly.' }),
        last_frame_url: Type.Optional(
          Type.String({ description: 'Where `return_last_frame` was asked for and the upstream gave one. It expires, too.' }),
        ),
      }),
      Type.Null(),
    ]),
    error: Type.Union([Type.Object({ code: Type.String(), message: Type.String() }), Type.Null()]),
    billing: Type.Object({
      status: Type.Enum(['held', 'settled', 'refunded']),
      currency: Type.Literal('USD'),
      frozen: Type.String({ description: 'The price at creation, a decimal string.' }),
      charged: Type.String({ description: 'Charged so far, a decimal string.' }),
    }),
  }),
} as const;

export type SharedSchemaName = keyof typeof SHARED_SCHEMAS;

export function ref(name: SharedSchemaName, description?: string) {
  return Type.Ref(`#/components/schemas/${name}`, description === undefined ? {} : { description });
}
