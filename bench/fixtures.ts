/**
 * Traffic shapes as literal upstream bytes, seeded, so that every run and every subject sees the same.
 * `test/bench/fixtures.test.ts` proves that they hold the events they claim: a benchmark cannot win by doing the wrong work.
 */

export type BenchDialect = 'chat' | 'responses' | 'messages';

/** A linear congruential generator: the same words in every run. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const SYLLABLES = [
  'wa',
  'ter',
  ' flows',
  ' down',
  ' the',
  ' stone',
  ', ',
  'and',
  ' finds',
  ' its',
  ' level',
  '. ',
  'mi',
  'zu',
  ' 水',
  ' é',
];

export function tokens(count: number, seed = 0xc0ffee): string[] {
  const random = seeded(seed);
  return Array.from({ length: count }, () => SYLLABLES[Math.floor(random() * SYLLABLES.length)] ?? 'x');
}

const USAGE = { input: 321, output: 100 };

/** The events of a text answer, one token each, as the frames that an upstream of the dialect writes. */
export function textFrames(dialect: BenchDialect, words: readonly string[]): string[] {
  switch (dialect) {
    case 'chat':
      return chatFrames(words);
    case 'responses':
      return responsesFrames(words);
    case 'messages':
      return messagesFrames(words);
  }
}

function chatFrames(words: readonly string[]): string[] {
  const chunk = (choices: unknown[], extra: object = {}): string =>
    `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1760000000, model: 'bench-up', service_tier: 'default', system_fingerprint: 'fp_b', choices, ...extra })}\n\n`;
  const delta = (value: object, finish: string | null = null) => [
    { index: 0, delta: value, logprobs: null, finish_reason: finish },
  ];
  return [
    chunk(delta({ role: 'assistant', content: '', refusal: null })),
    ...words.map((content) => chunk(delta({ content }))),
    chunk(delta({}, 'stop')),
    chunk([], {
      usage: { prompt_tokens: USAGE.input, completion_tokens: USAGE.output, total_tokens: USAGE.input + USAGE.output },
    }),
    'data: [DONE]\n\n',
  ];
}

function responsesFrames(words: readonly string[]): string[] {
  let sequence = 0;
  const event = (type: string, members: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence++, ...members })}\n\n`;
  const response = (status: string, output: unknown[], usage: unknown) => ({
    response: {
      id: 'resp_bench',
      object: 'response',
      created_at: 1760000000,
      status,
      model: 'bench-up',
      output,
      error: null,
      incomplete_details: null,
      usage,
    },
  });
  const at = { item_id: 'msg_bench', output_index: 0, content_index: 0 };
  const text = words.join('');
  const part = (value: string) => ({ type: 'output_text', text: value, annotations: [], logprobs: [] });
  const item = (status: string, content: unknown[]) => ({ id: 'msg_bench', type: 'message', status, role: 'assistant', content });
  return [
    event('response.created', response('in_progress', [], null)),
    event('response.in_progress', response('in_progress', [], null)),
    event('response.output_item.added', { output_index: 0, item: item('in_progress', []) }),
    event('response.content_part.added', { ...at, part: part('') }),
    ...words.map((delta) => event('response.output_text.delta', { ...at, delta, logprobs: [] })),
    event('response.output_text.done', { ...at, text, logprobs: [] }),
    event('response.content_part.done', { ...at, part: part(text) }),
    event('response.output_item.done', { output_index: 0, item: item('completed', [part(text)]) }),
    event(
      'response.completed',
      response('completed', [item('completed', [part(text)])], {
        input_tokens: USAGE.input,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens: USAGE.output,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: USAGE.input + USAGE.output,
      }),
    ),
  ];
}

function messagesFrames(words: readonly string[]): string[] {
  const event = (type: string, members: object = {}): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;
  const message = {
    id: 'msg_bench',
    type: 'message',
    role: 'assistant',
    model: 'bench-up',
    content: [],
    stop_reason: null,
    stop_sequence: null,
  };
  return [
    event('message_start', { message: { ...message, usage: { input_tokens: USAGE.input, output_tokens: 1 } } }),
    event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    event('ping'),
    ...words.map((text) => event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })),
    event('content_block_stop', { index: 0 }),
    event('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: USAGE.output } }),
    event('message_stop'),
  ];
}

/** A whole JSON answer of the same text. */
export function wholeBody(dialect: BenchDialect, words: readonly string[]): string {
  const text = words.join('');
  switch (dialect) {
    case 'chat':
      return JSON.stringify({
        id: 'chatcmpl-bench',
        object: 'chat.completion',
        created: 1760000000,
        model: 'bench-up',
        choices: [
          { index: 0, message: { role: 'assistant', content: text, refusal: null }, logprobs: null, finish_reason: 'stop' },
        ],
        usage: { prompt_tokens: USAGE.input, completion_tokens: USAGE.output, total_tokens: USAGE.input + USAGE.output },
      });
    case 'responses': {
      const last = responsesFrames(words).at(-1) ?? '';
      const body: { response: unknown } = JSON.parse(last.slice(last.indexOf('data: ') + 6));
      return JSON.stringify(body.response);
    }
    case 'messages':
      return JSON.stringify({
        id: 'msg_bench',
        type: 'message',
        role: 'assistant',
        model: 'bench-up',
        content: [{ type: 'text', text }],
        stop_reason: 'end_turn',
        stop_sequence: null,
        usage: { input_tokens: USAGE.input, output_tokens: USAGE.output },
      });
  }
}

/** A small request of a client dialect. */
export function requestBody(dialect: BenchDialect, model: string, stream: boolean): string {
  const text = 'Tell me how water finds its way.';
  switch (dialect) {
    case 'chat':
      return JSON.stringify({
        model,
        stream,
        messages: [{ role: 'user', content: text }],
        ...(stream ? { stream_options: { include_usage: true } } : {}),
      });
    case 'responses':
      return JSON.stringify({ model, stream, store: false, input: text });
    case 'messages':
      return JSON.stringify({ model, stream, max_tokens: 1024, messages: [{ role: 'user', content: text }] });
  }
}

export const CLIENT_PATHS: Readonly<Record<BenchDialect, string>> = {
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
};

/** The first word as every dialect quotes it. The upstream says these words too. */
export const FIRST_TOKEN = JSON.stringify(tokens(96)[0]).slice(0, -1);

const ENDINGS: Readonly<Record<BenchDialect, readonly [stream: string, whole: string]>> = {
  chat: ['[DONE]', '"finish_reason"'],
  responses: ['response.completed', '"completed"'],
  messages: ['message_stop', '"end_turn"'],
};

/** What a good answer holds, so that a fast failure cannot win. */
export function answerHolds(dialect: BenchDialect, stream: boolean): string {
  return ENDINGS[dialect][stream ? 0 : 1];
}
