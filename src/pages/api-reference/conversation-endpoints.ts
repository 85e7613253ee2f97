/** The reference of chat completions, responses (HTTP, WebSocket, compaction) and messages. */
import { Type } from 'typebox';
import type { EndpointReference } from './endpoint.ts';
import { INFERENCE_ERRORS, KEY_ERRORS } from './errors.ts';
import { ref } from './shared-schemas.ts';

const GROUP = 'Conversations';
const stream = (description: string) => Type.Optional(Type.Boolean({ default: false, description }));
const model = Type.String({ description: 'One of the names listed by `/v1/models`.' });
const more = { additionalProperties: true } as const;

const chatBody = Type.Object(
  {
    model,
    messages: Type.Array(
      Type.Object(
        {
          role: Type.Enum(['system', 'developer', 'user', 'assistant', 'tool']),
          content: Type.Optional(
            Type.Union([Type.String(), Type.Array(Type.Object({ type: Type.String() }, more)), Type.Null()], {
              description: 'Text, or a list of parts: `text`, `image_url`, `input_audio`, `file`.',
            }),
          ),
        },
        more,
      ),
      { minItems: 1 },
    ),
    stream: stream('If true, the answer comes as server-sent events, otherwise as one JSON body.'),
    stream_options: Type.Optional(
      Type.Object(
        { include_usage: Type.Optional(Type.Boolean()) },
        { description: '`include_usage` sends the usage in a chunk before `[DONE]`.' },
      ),
    ),
    reasoning_effort: Type.Optional(Type.String({ description: '`none` turns reasoning off. If absent, the upstream chooses.' })),
    max_completion_tokens: Type.Optional(Type.Integer({ minimum: 1, description: 'May also be called `max_tokens`.' })),
    temperature: Type.Optional(Type.Number()),
    top_p: Type.Optional(Type.Number()),
    stop: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())])),
    tools: Type.Optional(Type.Array(Type.Object({}, more), { description: 'Function and custom tools.' })),
    tool_choice: Type.Optional(Type.Union([Type.String(), Type.Object({}, more)])),
    parallel_tool_calls: Type.Optional(Type.Boolean()),
    response_format: Type.Optional(Type.Object({}, { ...more, description: 'Structured output.' })),
    n: Type.Optional(Type.Literal(1, { description: 'Only 1 is possible.' })),
  },
  { ...more, description: 'The standard chat-completions request.' },
);

const responsesFields = {
  model,
  input: Type.Optional(
    Type.Union([Type.String(), Type.Array(Type.Object({}, more))], {
      description:
        'Text, or items: messages (`{role, content}`, parts `input_text`, `input_image`), output items of earlier turns, tool results.',
    }),
  ),
  instructions: Type.Optional(Type.String({ description: 'The system prompt.' })),
  max_output_tokens: Type.Optional(Type.Integer({ minimum: 1 })),
  reasoning: Type.Optional(
    Type.Object(
      {
        effort: Type.Optional(Type.String({ description: '`none` turns reasoning off.' })),
        summary: Type.Optional(
          Type.String({ description: 'For example `auto`. Summaries are requested only if you ask for them.' }),
        ),
      },
      more,
    ),
  ),
  tools: Type.Optional(
    Type.Array(Type.Object({ type: Type.String() }, more), {
      description:
        'Functions, namespaces and built-in tools, such as `{type: "image_generation", size, quality}` if the upstream has it.',
    }),
  ),
  tool_choice: Type.Optional(Type.Union([Type.String(), Type.Object({}, more)])),
  parallel_tool_calls: Type.Optional(Type.Boolean()),
  text: Type.Optional(
    Type.Object(
      { format: Type.Optional(Type.Object({}, more)) },
      { ...more, description: '`format` asks for structured output.' },
    ),
  ),
  include: Type.Optional(
    Type.Array(Type.String(), {
      description: 'For example `reasoning.encrypted_content`. Forwarded as given; nothing is added.',
    }),
  ),
  store: Type.Optional(Type.Boolean({ default: true, description: 'If false, no history is kept.' })),
  previous_response_id: Type.Optional(
    Type.String({ description: 'Continues the history that was kept. Send only what is new.' }),
  ),
  conversation: Type.Optional(
    Type.Union([Type.String(), Type.Object({}, more)], {
      description: 'State that a responses upstream keeps itself. Cannot be combined with `previous_response_id`.',
    }),
  ),
};

const RESPONSE_EVENTS = [
  { name: 'response.created, response.in_progress', text: 'The response has begun. `sequence_number` counts from 0.' },
  { name: 'response.output_item.added', text: 'An item begins.' },
  { name: 'response.content_part.added, response.reasoning_summary_part.added', text: 'A part of it begins.' },
  {
    name: 'response.output_text.delta, response.refusal.delta, response.reasoning_text.delta, response.reasoning_summary_text.delta',
    text: 'Text as it is generated.',
  },
  {
    name: 'response.function_call_arguments.delta, response.custom_tool_call_input.delta',
    text: 'Arguments as they are generated. They are complete only with their `.done`.',
  },
  { name: '… .done', text: 'What was streamed, in one piece.' },
  { name: 'response.output_item.done', text: 'The complete, final item, with its `encrypted_content` if it has one.' },
  { name: 'response.completed', text: 'The good ending, with usage.' },
  { name: 'response.incomplete', text: 'The answer was cut short; `incomplete_details.reason` says why.' },
  { name: 'response.failed', text: 'A failure, with the output so far, usage and error. No ending is followed by `[DONE]`.' },
] as const;

export const CONVERSATION_ENDPOINTS: readonly EndpointReference[] = [
  {
    id: 'create-response',
    group: GROUP,
    method: 'POST',
    path: '/v1/responses',
    aliasRule: 'codex',
    title: 'Create a response',
    summary: 'The responses protocol, as one JSON answer or as a stream of named events.',
    auth: 'key',
    rules: [
      'To continue with the full history, append every output item of the last turn unchanged, then the new message. This works across models and gateways.',
      'To continue with `previous_response_id`, send only what is new. The history belongs to the key, is kept for 30 minutes in one process, and may be evicted earlier.',
      'An `item_reference` names an item of an answer that was kept. Upstreams of other protocols are told what it said, or the request is 400 `item_not_found`; a responses upstream looks it up itself.',
      'An answer that cannot be completed ends with `response.failed`, never with a success.',
    ],
    bodies: [
      {
        contentType: 'application/json',
        schema: Type.Object(
          { ...responsesFields, stream: stream('If true, the answer comes as named server-sent events.') },
          more,
        ),
      },
    ],
    responses: [
      { status: 200, text: 'The response.', contentType: 'application/json', schema: ref('Response') },
      { status: 200, text: 'With `stream: true`: events.', contentType: 'text/event-stream' },
    ],
    events: RESPONSE_EVENTS,
    errors: [
      ...INFERENCE_ERRORS,
      'previous_response_not_found',
      'item_not_found',
      'tool_call_not_found',
      'unsupported_conversion',
      'background_not_supported',
      'response_not_representable',
      'cancelled',
    ],
  },
  {
    id: 'connect-responses',
    group: GROUP,
    method: 'GET',
    path: '/v1/responses',
    aliasRule: 'codex',
    title: 'Responses over WebSocket',
    summary: 'The same protocol on one connection: each message you send is a request, each event comes back as one message.',
    auth: 'key',
    rules: [
      'Send one JSON object of type `response.create` with the fields of the POST body; `stream` is implied. There is one answer at a time, and by default a connection has 128 turns.',
      'The connection remembers its last response, whatever `store` says. `previous_response_id` continues it, and fields that you leave out keep their values. This memory ends with the connection.',
      'The header `OpenAI-Beta: responses_websockets=2026-02-04` makes a v1 connection, which ends a turn with `response.done` and may send `response.append`. Any other connection is v2, which ends it with `response.completed`.',
      'A message may be as large as a POST body. A larger one is answered with `request_too_large`, and the connection closes with code 1009.',
      'A plain request without an upgrade gets 426.',
    ],
    responses: [{ status: 101, text: 'The connection is a WebSocket.' }],
    events: [
      ...RESPONSE_EVENTS,
      { name: 'response.done', text: 'On v1 connections, instead of `response.completed`.' },
      {
        name: 'error',
        text: '`{"type":"error","status","error":{"type","code","message","param"}}`: the request was refused. The codes are those of POST, plus `invalid_websocket_event`, `websocket_busy` (another answer is still running), `websocket_history_limit_exceeded`, `websocket_connection_limit_reached`, `tool_call_not_found`, `response_cancel_not_active`. A turn that fails lets go of the response that it continued.',
      },
    ],
    errors: [
      ...KEY_ERRORS,
      'rate_limited',
      'rate_limit_exceeded',
      'upgrade_required',
      'shutting_down',
      'previous_response_not_found',
      'item_not_found',
      'invalid_websocket_event',
      'websocket_busy',
      'tool_call_not_found',
      'response_cancel_not_active',
      'websocket_history_limit_exceeded',
      'websocket_connection_limit_reached',
    ],
  },
  {
    id: 'compact-response',
    group: GROUP,
    method: 'POST',
    path: '/v1/responses/compact',
    aliasRule: 'codex',
    title: 'Compact a conversation',
    summary: 'Turns a long conversation into a shorter input, by the upstream’s own means.',
    auth: 'key',
    rules: [
      'The body goes to the upstream’s endpoint of the same name, so it works only for models whose upstream has one. It is charged at the price of the model.',
    ],
    bodies: [{ contentType: 'application/json', schema: Type.Object({ model, input: responsesFields.input }, more) }],
    responses: [{ status: 200, text: 'The upstream’s answer.', contentType: 'application/json', schema: Type.Object({}, more) }],
    errors: INFERENCE_ERRORS,
  },
  {
    id: 'create-chat-completion',
    group: GROUP,
    method: 'POST',
    path: '/v1/chat/completions',
    aliasRule: 'synchronous',
    title: 'Create a chat completion',
    summary: 'The chat-completions protocol.',
    auth: 'key',
    rules: ['An answer that fails after its first chunk ends with an `error` object and no `[DONE]`.'],
    bodies: [{ contentType: 'application/json', schema: chatBody }],
    responses: [
      {
        status: 200,
        text: 'A standard chat completion.',
        contentType: 'application/json',
        schema: Type.Object(
          {
            id: Type.String(),
            object: Type.Literal('chat.completion'),
            created: Type.Integer(),
            model: Type.String(),
            choices: Type.Array(
              Type.Object({ index: Type.Integer(), message: Type.Object({}, more), finish_reason: Type.String() }, more),
            ),
            usage: Type.Optional(Type.Object({}, more)),
          },
          more,
        ),
      },
      { status: 200, text: 'With `stream: true`: chunks.', contentType: 'text/event-stream' },
    ],
    events: [
      { name: 'data: {"object":"chat.completion.chunk"}', text: 'A piece of text, reasoning or a tool call.' },
      { name: 'finish_reason', text: 'The last chunk with a choice: `stop`, `length`, `tool_calls`, `content_filter`.' },
      { name: 'usage', text: 'A chunk with empty `choices`, if `stream_options.include_usage` asked for it.' },
      { name: 'data: [DONE]', text: 'The good ending.' },
      { name: 'data: {"error"}', text: 'A failure; the stream then closes.' },
    ],
    errors: [...INFERENCE_ERRORS, 'unsupported_conversion', 'response_not_representable', 'cancelled'],
  },
  {
    id: 'create-message',
    group: GROUP,
    method: 'POST',
    path: '/v1/messages',
    aliasRule: 'synchronous',
    title: 'Create a message',
    summary: 'The messages protocol.',
    auth: 'key',
    rules: [
      '`POST /v1/messages/count_tokens` does not exist.',
      'An answer that fails after its first event ends with `event: error`, never with `message_stop`.',
      'A request that creates a `thread` is answered like any other. One that continues a thread gets `thread_not_found`, and the official SDK then sends the whole conversation.',
    ],
    headers: [
      {
        name: 'anthropic-version',
        required: false,
        text: 'The date of the protocol, for example `2023-06-01`. Any date is accepted.',
      },
    ],
    bodies: [
      {
        contentType: 'application/json',
        schema: Type.Object(
          {
            model,
            max_tokens: Type.Optional(
              Type.Integer({
                minimum: 0,
                description: 'If absent, a messages upstream gets 128000. With 0 it only fills its prompt cache.',
              }),
            ),
            messages: Type.Array(
              Type.Object(
                {
                  role: Type.String({ description: '`user` or `assistant`; `system` is accepted, too.' }),
                  content: Type.Union([Type.String(), Type.Array(Type.Object({ type: Type.String() }, more))]),
                },
                more,
              ),
            ),
            system: Type.Optional(Type.Union([Type.String(), Type.Array(Type.Object({}, more))])),
            stream: stream('If true, the answer comes as server-sent events.'),
            thinking: Type.Optional(Type.Object({ type: Type.String() }, more)),
            tools: Type.Optional(Type.Array(Type.Object({}, more))),
            tool_choice: Type.Optional(Type.Object({ type: Type.String() }, more)),
            stop_sequences: Type.Optional(Type.Array(Type.String())),
            temperature: Type.Optional(Type.Number()),
            top_p: Type.Optional(Type.Number()),
            top_k: Type.Optional(Type.Integer()),
          },
          more,
        ),
      },
    ],
    responses: [
      {
        status: 200,
        text: 'A message.',
        contentType: 'application/json',
        schema: Type.Object(
          {
            id: Type.String(),
            type: Type.Literal('message'),
            role: Type.Literal('assistant'),
            model: Type.String(),
            content: Type.Array(Type.Object({ type: Type.String() }, more)),
            stop_reason: Type.Union([Type.String(), Type.Null()]),
            usage: Type.Object({ input_tokens: Type.Integer(), output_tokens: Type.Integer() }, more),
          },
          more,
        ),
      },
      { status: 200, text: 'With `stream: true`: events.', contentType: 'text/event-stream' },
    ],
    events: [
      { name: 'message_start', text: 'The message begins.' },
      { name: 'content_block_start', text: 'A block: `text`, `thinking`, `tool_use` …' },
      {
        name: 'content_block_delta',
        text: '`text_delta`, `thinking_delta`, `input_json_delta`, `citations_delta`; `signature_delta` brings a whole signature at once.',
      },
      { name: 'content_block_stop', text: 'The block is complete.' },
      { name: 'message_delta', text: 'The stop reason and the usage.' },
      { name: 'message_stop', text: 'The good ending.' },
      { name: 'ping', text: 'A keep-alive.' },
      { name: 'error', text: 'A failure; the stream then closes.' },
    ],
    errors: [...INFERENCE_ERRORS, 'thread_not_found', 'unsupported_conversion', 'response_not_representable', 'cancelled'],
    errorBody: 'messages',
  },
];
