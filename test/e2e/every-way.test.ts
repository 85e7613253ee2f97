/**
 * One turn of a responses client means the same whole, as a stream and over a WebSocket, over every upstream: what its upstream
 * is sent, what it is told, and what it is refused. So whatever other tests hold of one of these ways holds of the three.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Fault, RawAnswer, Script } from '../../src/simulator/script.ts';
import { connect } from '../http/websocket/socket-client.ts';
import { type TestGateway, testGateway } from '../support/test-gateway.ts';
import { formChannel, formsConfig, startVendors, type TextType, upstreamForms } from '../support/upstream-forms.ts';
import { drawn } from '../support/sampled.ts';

const simulator = await startVendors({ pace: { cut: 'packet' } });
test.after(() => simulator.close());
test.beforeEach(() => simulator.reset());

const FORMS = upstreamForms(import.meta.filename);
/** The upstreams' own name of every model, which no client reads. */
const WIRE = 'wire-9.5';
const CONFIG = {
  ...formsConfig(FORMS, simulator.url),
  channels: FORMS.map((form) => formChannel(form, simulator.url, { models: { [form.name]: WIRE } })),
};

type Json = Readonly<Record<string, unknown>>;
type Ending = string | readonly [string, string];

interface Case {
  readonly body: Json;
  /** For each way anew; `isStream` is what the upstream is asked for. Without one the strict vendor answers. */
  readonly script?: (isStream: boolean) => Script;
  /** The upstreams that it is about; all by default. */
  readonly only?: readonly TextType[];
  /**
   * The word that every way ends in: a status of the response, or the code of a refusal; or that of a whole answer and of a
   * stream.
   */
  readonly ends: Ending | ((type: TextType) => Ending);
}

const user = (content: unknown) => ({ role: 'user', content });
const said = (text: unknown) => ({ role: 'assistant', content: text });
const called = (id: string) => ({ type: 'function_call', call_id: id, name: 'look', arguments: '{"at":"sky"}' });
const result = (id: string, output: unknown = 'blue') => ({ type: 'function_call_output', call_id: id, output });
const look = (more: object = {}) => ({
  ...{ type: 'function', name: 'look', description: 'Looks.' },
  ...{ parameters: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] } },
  ...more,
});
const BLANK = ' \n\t';
const LONG = `call_${'x'.repeat(195)}`;
const breakpoint = { mode: 'explicit' };

/** What a client says that some vendor refuses, or has no word for. */
const REQUESTS: Readonly<Record<string, Case>> = {
  'a question': { body: { input: 'hi' }, ends: 'completed' },
  'blank texts of every role': {
    body: {
      instructions: BLANK,
      input: [{ role: 'developer', content: BLANK }, user('q'), said(BLANK), called('c'), result('c', BLANK), user(BLANK)],
      tools: [look()],
    },
    ends: 'completed',
  },
  'call ids of 200 characters': {
    body: { input: [user('q'), called(LONG), called(`${LONG}y`), result(LONG), result(`${LONG}y`)], tools: [look()] },
    ends: 'completed',
  },
  'calls in the history and no tools': {
    body: { input: [user('q'), called('c'), result('c'), user('go on')] },
    ends: 'completed',
  },
  'a format and a strict tool with bounds': {
    body: {
      input: 'q',
      text: {
        format: {
          type: 'json_schema',
          name: 'n',
          schema: { type: 'object', properties: { age: { type: 'integer', minimum: 0 } }, required: ['age'] },
        },
      },
      tools: [look({ parameters: { ...look().parameters, additionalProperties: false }, strict: true })],
    },
    ends: 'completed',
  },
  'any JSON object': { body: { input: 'JSON please', text: { format: { type: 'json_object' } } }, ends: 'completed' },
  'a small cap, a high temperature and an answer that begins': {
    body: { input: [said('Hello.'), user('q')], max_output_tokens: 3, temperature: 1.9 },
    // The vendor judges what a client of its own protocol asks for.
    ends: (type) => (type === 'responses' ? 'integer_below_min_value' : 'incomplete'),
  },
  'breakpoints of the cache': {
    body: {
      input: [user([{ type: 'input_text', text: 'q', prompt_cache_breakpoint: breakpoint }])],
      prompt_cache_options: { ttl: '12h' },
    },
    ends: 'completed',
  },
  'functions that answer later, are loaded later and are for programs': {
    body: {
      input: 'q',
      tools: [
        look({ async: true, defer_loading: true, output_schema: { type: 'object' } }),
        look({ name: 'hidden', allowed_callers: ['programmatic'] }),
      ],
    },
    ends: 'completed',
  },
  'a reference to an item that nobody keeps': {
    body: { input: [user('q'), { type: 'item_reference', id: 'fc_gone' }, result('c')], tools: [look()] },
    ends: (type) => (type === 'responses' ? 'upstream_error' : 'item_not_found'),
  },
  'a half-made breakpoint': {
    body: { input: [user([{ type: 'input_text', text: 'q', prompt_cache_breakpoint: {} }])] },
    ends: 'invalid_request',
  },
  'a compaction of nobody': {
    body: { input: [user('q'), { type: 'compaction', encrypted_content: 'mz2.AAAA' }] },
    ends: 'unsupported_conversion',
  },
  'the least effort': { body: { input: 'q', reasoning: { effort: 'minimal' } }, ends: 'completed' },
  'encrypted reasoning behind its message': {
    body: {
      input: [user('q'), said('a'), { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAAA' }, user('b')],
      store: false,
    },
    script: () => ({ reply: { pieces: [{ type: 'text', text: 'x' }] } }),
    ends: 'completed',
  },
  'a trigger of a compaction that nobody makes': {
    body: { input: [user('q'), { type: 'compaction_trigger' }] },
    ends: (type) => (type === 'responses' ? 'completed' : 'unsupported_conversion'),
  },
};

const reply =
  (pieces: NonNullable<Script['reply']>['pieces'], more: object = {}) =>
  () => ({ reply: { pieces, ...more } });
/** These name the code of a failure in the words of the client's protocol. */
const OPENAI: ReadonlySet<TextType> = new Set(['chat_completion', 'responses']);
const fails = (fault: Fault) => () => ({
  reply: { pieces: [{ type: 'text' as const, text: 'one two three four five six' }] },
  faults: [fault],
});

const sse = (events: readonly object[], ending = ''): RawAnswer => ({
  headers: { 'content-type': 'text/event-stream' },
  body: events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('') + ending,
});
const json = (body: object): RawAnswer => ({ headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });

const chatUsage = {
  prompt_tokens: 10,
  completion_tokens: 20,
  total_tokens: 60,
  completion_tokens_details: { reasoning_tokens: 30 },
};
const chatMore = { id: 'c', created: 1, model: 'm' };
const content = [
  { type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] },
  { type: 'text', text: 'Hi ' },
  { type: 'output_text', text: 'you' },
];
const gemini = (part: object, finishReason: string) => ({
  candidates: [{ content: { role: 'model', parts: [part] }, finishReason }],
});
const message = (stop: string, block: object) => ({
  ...{ id: 'm', type: 'message', role: 'assistant', model: 'm', content: [block], stop_reason: stop, stop_sequence: null },
  usage: { input_tokens: 1, output_tokens: 1 },
});
const messageStream = (stop: string, block: object, ending = 'data: {"type":"message_stop"}\n\n') =>
  sse(
    [
      { type: 'message_start', message: { ...message(stop, block), content: [], stop_reason: null } },
      { type: 'content_block_start', index: 0, content_block: block },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: stop }, usage: { output_tokens: 1 } },
    ],
    ending,
  );
const responseOf = (status: string, item: object, more: object = {}) => ({
  ...{ id: 'resp_up', object: 'response', created_at: 1, status, output: [item], usage: null },
  ...more,
});
const responseStream = (type: string, response: ReturnType<typeof responseOf>) =>
  sse([
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item: response.output[0] },
    { type: 'response.output_item.done', output_index: 0, item: response.output[0] },
    { type, response },
  ]);
const text = { type: 'text', text: 'x' };
const steered = responseOf(
  'incomplete',
  {
    type: 'message',
    id: 'msg_1',
    role: 'assistant',
    status: 'incomplete',
    content: [{ type: 'output_text', text: 'x', annotations: [] }],
  },
  { incomplete_details: { reason: 'steered' } },
);
const program = responseOf('completed', { type: 'program', id: 'prog_1', call_id: 'c', code: '1', status: 'completed' });
const thought = responseOf('completed', {
  ...{ type: 'reasoning', id: 'rs_1', summary: [], content: [{ type: 'reasoning_text', text: 'Let me think.' }] },
});
const thinking = sse([
  { type: 'response.created', response: { ...thought, status: 'in_progress', output: [] } },
  { type: 'response.output_item.added', output_index: 0, item: { type: 'reasoning', id: 'rs_1', summary: [] } },
  { type: 'response.reasoning.delta', item_id: 'rs_1', output_index: 0, content_index: 0, delta: 'Let me think.' },
  { type: 'response.reasoning.done', item_id: 'rs_1', output_index: 0, content_index: 0, text: 'Let me think.' },
  { type: 'response.output_item.done', output_index: 0, item: thought.output[0] },
  { type: 'response.completed', response: thought },
]);

const ask = { input: 'q', tools: [look()] };

/** What an upstream answers in words that the protocol of the client lacks, or in an unusual form. */
const ANSWERS: Readonly<Record<string, Case>> = {
  'reasoning of every kind, a text, calls side by side': {
    body: ask,
    script: reply([
      { type: 'reasoning', raw: 'hm', summary: ['Hm.'], opaque: true },
      { type: 'text', text: 'I look.', signature: true },
      { type: 'tool', name: 'look', arguments: '{"at":"sky"}', signature: true },
      { type: 'tool', name: 'look', arguments: '{"at":"sea"}' },
    ]),
    ends: 'completed',
  },
  'a text that a limit cut': {
    body: ask,
    script: reply([{ type: 'text', text: 'half' }], { finish: 'length' }),
    ends: 'incomplete',
  },
  'a mistake that names the model of the wire': {
    body: ask,
    script: () => ({ faults: [{ type: 'status', status: 400, message: `${WIRE} takes no such thing.` }] }),
    ends: 'upstream_error',
  },
  'an error in the middle': {
    body: ask,
    script: fails({ type: 'error-event', at: 6 }),
    ends: (type) => ['upstream_error', OPENAI.has(type) ? 'server_error' : 'upstream_error'],
  },
  'a cut in the middle': { body: ask, script: fails({ type: 'cut', at: 6 }), ends: 'upstream_error' },
  'a chat answer in parts, its reasoning beside the output': {
    body: ask,
    only: ['chat_completion'],
    script: (isStream) => ({
      raw: isStream
        ? sse(
            [
              ...content.map((part) => ({
                ...chatMore,
                choices: [{ index: 0, delta: { content: [part] }, finish_reason: null }],
              })),
              { ...chatMore, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage: chatUsage },
            ],
            // The end of the bytes within the last event.
            'data: [DO',
          )
        : json({ ...chatMore, choices: [{ index: 0, message: { role: 'assistant', content } }], usage: chatUsage }),
    }),
    ends: 'completed',
  },
  'an encrypted thought behind the content': {
    body: ask,
    only: ['chat_completion'],
    script: (isStream) => {
      const details = [{ type: 'reasoning.encrypted', id: 'r', data: 'secret', format: 'google-gemini-v1', index: 0 }];
      const of = (delta: object, finish: string | null) => ({
        ...chatMore,
        choices: [{ index: 0, delta, finish_reason: finish }],
      });
      const whole = { role: 'assistant', content: 'Blue.', reasoning_details: details };
      return {
        raw: isStream
          ? sse([of({ content: 'Blue.' }, null), of({ reasoning_details: details }, null), of({}, 'stop')], 'data: [DONE]\n\n')
          : json({ ...chatMore, choices: [{ index: 0, message: whole, finish_reason: 'stop' }] }),
      };
    },
    ends: 'completed',
  },
  'a pause of a messages upstream': {
    body: ask,
    only: ['messages'],
    script: (isStream) => ({
      raw: isStream ? messageStream('pause_turn', text, 'event: message_st') : json(message('pause_turn', text)),
    }),
    ends: 'incomplete',
  },
  'a tool of the server alone': {
    body: ask,
    only: ['messages'],
    script: (isStream) => {
      const block = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'x', input: {} };
      return { raw: isStream ? messageStream('end_turn', block) : json(message('end_turn', block)) };
    },
    ends: 'response_not_representable',
  },
  'an answer that gemini wants to go on with': {
    body: ask,
    only: ['gemini'],
    script: (isStream) => {
      const answer = gemini({ text: 'x' }, 'CONTINUATION');
      return { raw: isStream ? sse([answer]) : json(answer) };
    },
    ends: 'incomplete',
  },
  'code that gemini ran, alone': {
    body: ask,
    only: ['gemini'],
    script: (isStream) => {
      const answer = gemini({ executableCode: { code: '1' } }, 'STOP');
      return { raw: isStream ? sse([answer]) : json(answer) };
    },
    ends: 'response_not_representable',
  },
  'an answer that was steered': {
    body: ask,
    only: ['responses'],
    script: (isStream) => ({ raw: isStream ? responseStream('response.incomplete', steered) : json(steered) }),
    ends: 'incomplete',
  },
  'a program': {
    body: ask,
    only: ['responses'],
    script: (isStream) => ({ raw: isStream ? responseStream('response.completed', program) : json(program) }),
    ends: 'completed',
  },
  'what Open Responses calls reasoning': {
    body: ask,
    only: ['responses'],
    script: (isStream) => ({ raw: isStream ? thinking : json(thought) }),
    ends: 'completed',
  },
};

/** Ids, times and sealed values are new each time. */
const settled = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (key, member) => (/^(created_at|completed_at|sequence_number|obfuscation)$/.test(key) ? 0 : member))
      .replaceAll(/"(resp|msg|rs|fc|cmp|call|toolu|srvtoolu|prog)_[\w-]+"/g, '"$1"')
      .replaceAll(/"mz2\.[^"]*"/g, '"mz2"'),
  );

interface Heard {
  /** The body that the upstream was sent, without what asks for a stream. */
  readonly sent: unknown;
  readonly events: readonly Json[];
  /** The response object, or the error. */
  readonly end: Json;
  readonly status: unknown;
}

function sentBody(): unknown {
  const body: Record<string, unknown> = JSON.parse(simulator.requests.at(-1)?.text ?? '{}');
  for (const name of ['stream', 'stream_options']) delete body[name];
  return settled(body);
}

const endOf = (last: Json | undefined): Json => (last?.['response'] ?? last?.['error'] ?? {}) as Json;

type Way = (gateway: TestGateway, body: Json) => Promise<Heard>;
const WAYS: Readonly<Record<string, Way>> = {
  async whole(gateway, body) {
    const answer = await gateway.post('/v1/responses', body);
    const said = JSON.parse(await answer.text());
    return { sent: sentBody(), events: [], end: said.object === 'response' ? said : said.error, status: answer.status };
  },
  async stream(gateway, body) {
    const answer = await gateway.post('/v1/responses', { ...body, stream: true });
    const said = await answer.text();
    if (answer.status !== 200) return { sent: sentBody(), events: [], end: JSON.parse(said).error, status: answer.status };
    const events = [...said.matchAll(/^data: (\{.*\})$/gm)].map(([, data = '']): Json => JSON.parse(data));
    return { sent: sentBody(), events, end: endOf(events.at(-1)), status: 200 };
  },
  async socket(gateway, body) {
    const client = await connect(gateway);
    const events = await client.turn({ type: 'response.create', ...body });
    client.ws.close();
    const last = events.at(-1);
    const isRefused = last?.type === 'error';
    return { sent: sentBody(), events: isRefused ? [] : events, end: endOf(last), status: isRefused ? last['status'] : 200 };
  },
};

const wordOf = ({ end }: Heard): unknown => {
  const error = (end['error'] ?? (end['status'] === undefined ? end : undefined)) as Json | undefined;
  return error?.['code'] ?? error?.['type'] ?? end['status'];
};

for (const [about, { body, script, only, ends }] of Object.entries({ ...REQUESTS, ...ANSWERS })) {
  test(`whole, as a stream and over a WebSocket: ${about}`, async () => {
    await using gateway = await testGateway(CONFIG);
    // Of a case that is about some upstreams, all of them.
    for (const { name: model, type, cloud } of only === undefined ? drawn(FORMS, 2, about) : FORMS) {
      // Bytes of the vendor's own door.
      if (only !== undefined && (!only.includes(type) || cloud !== undefined)) continue;
      const heard: Record<string, Heard> = {};
      for (const [way, ask] of Object.entries(WAYS)) {
        simulator.reset();
        gateway.running.gateway.dispatcher.health.keepOnly(new Set());
        if (script !== undefined) simulator.enqueue(script(way !== 'whole'));
        heard[way] = await ask(gateway, { model, ...body });
      }
      const { whole, stream, socket } = heard as { whole: Heard; stream: Heard; socket: Heard };
      assert.deepEqual(stream.sent, whole.sent, `${model}: what a stream sends`);
      assert.deepEqual(socket.sent, stream.sent, `${model}: what a socket sends`);
      assert.deepEqual(settled(socket.events), settled(stream.events), `${model}: the events of a socket`);
      assert.deepEqual(settled(socket.end), settled(stream.end), `${model}: the end of a socket`);
      // A response object; an error has none.
      if (whole.end['output'] !== undefined) assert.deepEqual(settled(stream.end), settled(whole.end), `${model}: whole`);
      const ending = typeof ends === 'function' ? ends(type) : ends;
      assert.deepEqual([wordOf(whole), wordOf(stream)], typeof ending === 'string' ? [ending, ending] : ending, model);
      const told = [whole, stream, socket].map(({ events, end }) => ({ events, end }));
      assert.doesNotMatch(JSON.stringify(told), new RegExp(WIRE.replace('.', '\\.')), `${model}: the name of the wire`);
    }
  });
}
