/** Schemas that several endpoints share. They become `components/schemas` of the OpenAPI document, and `ref` refers to them. */
import { Type } from 'typebox';

const nullableText = (description: string) => Type.Union([Type.String(), Type.Null()], { description });

export const SHARED_SCHEMAS = {
  Error: Type.Object(
    {
      error: Type.Object({
        message: Type.String({ description: 'For people. It never contains upstream addresses, keys or account names.' }),
        type: Type.String({ description: 'The class of the error, for example `invalid_request_error`.' }),
        param: nullableText('The path of the wrong field, for example `messages[0].content`.'),
        code: nullableText('For programs: a code from the table of errors.'),
      }),
    },
    { description: 'The error body of every protocol but messages.' },
  ),
  MessagesError: Type.Object(
    {
      type: Type.Literal('error'),
      error: Type.Object({
        type: Type.String({ description: 'For example `invalid_request_error`, `authentication_error` or `overloaded_error`.' }),
        message: Type.String(),
        code: Type.Optional(Type.String({ description: 'A code from the table of errors.' })),
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
        [
          Type.Object({ reason: Type.String({ description: 'For example `max_output_tokens` or `content_filter`.' }) }),
          Type.Null(),
        ],
        {
          description: 'The reason, if `status` is `incomplete`.',
        },
      ),
    ),
    error: Type.Optional(
      Type.Union([Type.Object({ code: Type.String(), message: Type.String() }), Type.Null()], {
        description: 'The reason, if `status` is `failed`.',
      }),
    ),
    model: Type.String({ description: 'The name that you asked for.' }),
    output: Type.Array(Type.Ref('#/components/schemas/OutputItem'), {
      description: 'The items in the order in which the model produced them.',
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
          description: 'Begins with `mz2.`. Send it back unchanged. Only the kind of upstream that made it will receive it.',
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
      description: '`unknown` means that the upstream may still have the task. Ask the operator before you order it again.',
    }),
    created_at: Type.Integer({ description: 'Unix seconds.' }),
    updated_at: Type.Integer({ description: 'Unix seconds.' }),
    output: Type.Union([
      Type.Object({
        url: Type.String({ description: 'The upstream’s link. It expires, so fetch it promptly.' }),
        last_frame_url: Type.Optional(
          Type.String({
            description: 'Present if `return_last_frame` was asked for and the upstream gave one. It expires, too.',
          }),
        ),
      }),
      Type.Null(),
    ]),
    error: Type.Union([Type.Object({ code: Type.String(), message: Type.String() }), Type.Null()]),
    billing: Type.Object({
      status: Type.Enum(['held', 'settled', 'refunded']),
      currency: Type.Literal('USD'),
      frozen: Type.String({ description: 'The price at creation, as a decimal string.' }),
      charged: Type.String({ description: 'What has been charged so far, as a decimal string.' }),
    }),
  }),
} as const;

export type SharedSchemaName = keyof typeof SHARED_SCHEMAS;

export function ref(name: SharedSchemaName, description?: string) {
  return Type.Ref(`#/components/schemas/${name}`, description === undefined ? {} : { description });
}
