/**
 * What the acceptance tests of Open Responses (specification of 2026-04-24) ask of a server, in words of our own: each statement
 * over each upstream dialect, with compaction by summary where the upstream has none.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, type ServerEvent } from '../http/websocket/socket-client.ts';
import { type TestGateway, testGateway } from '../support/test-gateway.ts';
import { formsConfig, startVendors, upstreamForms } from '../support/upstream-forms.ts';

const simulator = await startVendors({ pace: { cut: 'packet' } });
test.after(() => simulator.close());
test.beforeEach(() => simulator.reset());

const PRICE = { price: { input: '1', output: '2' } };
const FORMS = upstreamForms(import.meta.filename);
const CONFIG = formsConfig(FORMS, simulator.url, () => ({ compaction: 'summary' }));

interface Item {
  readonly type: string;
  readonly id: string;
  readonly role?: string;
  readonly status?: string;
  readonly content?: { readonly type: string; readonly text: string }[];
  readonly encrypted_content?: string;
}
interface Response {
  readonly id: string;
  readonly object: string;
  readonly status: string;
  readonly output: readonly Item[];
  readonly tools: readonly Record<string, unknown>[];
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number; readonly total_tokens: number };
}

const say = (text: string) => ({ reply: { pieces: [{ type: 'text' as const, text }], usage: { input: 40, output: 5 } } });
const user = (content: unknown) => ({ type: 'message', role: 'user', content });
const assistant = (content: string, more: object = {}) => ({ type: 'message', role: 'assistant', content, ...more });
const sent = () => simulator.requests.at(-1)?.text ?? '';

async function create(gateway: TestGateway, body: object): Promise<Response> {
  const answer = await gateway.post('/v1/responses', body);
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return isResponse(JSON.parse(text));
}

/** The members that the protocol requires of every response object. */
const REQUIRED =
  'id object created_at completed_at status incomplete_details model previous_response_id instructions output error tools tool_choice truncation parallel_tool_calls text top_p presence_penalty frequency_penalty top_logprobs temperature reasoning usage max_output_tokens max_tool_calls store background service_tier metadata safety_identifier prompt_cache_key'.split(
    ' ',
  );

function isResponse(response: Response): Response {
  assert.equal(response.object, 'response');
  const missing = REQUIRED.filter((name) => !Object.hasOwn(response, name));
  assert.deepEqual(missing, []);
  return response;
}

function textOf({ output }: Response): string {
  return output
    .flatMap(({ content }) => content ?? [])
    .map(({ text }) => text)
    .join('');
}

function terminal(events: readonly ServerEvent[]): Response {
  const last = events.at(-1);
  assert.equal(last?.type, 'response.completed', JSON.stringify(last));
  return isResponse(last['response'] as Response);
}

function codeOf(events: readonly ServerEvent[]): unknown {
  const last = events.at(-1);
  return last?.type === 'error' ? (last['error'] as { code: unknown }).code : last?.type;
}

for (const { name: model, type } of FORMS) {
  test(`Open Responses over ${model}: answers, instructions, several turns, an assistant that begins, phases, images`, async () => {
    await using gateway = await testGateway(CONFIG);
    const bodies = [
      { input: [user('Say hello in three words.')] },
      { input: [{ type: 'message', role: 'system', content: 'You are a pirate.' }, user('Say hello.')] },
      { input: [user('My name is Alice.'), assistant('Hello Alice!'), user('What is my name?')] },
      { input: [assistant('Here is a plan.', { phase: 'commentary' }), user('Go on.')] },
      {
        input: [
          user('x'),
          assistant('thinking', { phase: 'commentary' }),
          assistant('done', { phase: 'final_answer' }),
          user('y'),
        ],
      },
      {
        input: [
          user([
            { type: 'input_text', text: 'What is this?' },
            {
              type: 'input_image',
              image_url:
                'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
            },
          ]),
        ],
      },
    ];
    for (const body of bodies) {
      simulator.enqueue(say('Ahoy there.'));
      const response = await create(gateway, { model, ...body });
      assert.equal(response.status, 'completed');
      assert.equal(textOf(response), 'Ahoy there.');
    }
  });

  test(`Open Responses over ${model}: a stream`, async () => {
    await using gateway = await testGateway(CONFIG);
    simulator.enqueue(say('one two three'));
    const body = await (await gateway.post('/v1/responses', { model, input: [user('Count.')], stream: true })).text();
    const events = [...body.matchAll(/^data: (\{.*\})$/gm)].map(([, data]): ServerEvent => JSON.parse(data ?? ''));
    assert.equal(textOf(terminal(events)), 'one two three');
    assert.deepEqual(
      events.map((event) => event['sequence_number']),
      events.map((_, index) => index),
    );
  });

  test(`Open Responses over ${model}: a function call, and the tool echoed with every member`, async () => {
    await using gateway = await testGateway(CONFIG);
    simulator.enqueue({ reply: { pieces: [{ type: 'tool', name: 'get_weather', arguments: '{"location":"Paris"}' }] } });
    const parameters = { type: 'object', properties: { location: { type: 'string' } }, required: ['location'] };
    const tools = [{ type: 'function', name: 'get_weather', description: 'Weather', parameters }];
    const response = await create(gateway, { model, input: [user('Weather in Paris?')], tools });
    assert.ok(response.output.some(({ type }) => type === 'function_call'));
    const [tool] = response.tools;
    for (const name of ['type', 'name', 'description', 'parameters', 'strict']) assert.ok(Object.hasOwn(tool ?? {}, name), name);
  });

  test(`Open Responses over ${model}: sockets: one turn, turns in sequence, a continuation`, async () => {
    await using gateway = await testGateway(CONFIG);
    const client = await connect(gateway);
    for (const word of ['first', 'second']) {
      simulator.enqueue(say(word));
      const turn = await client.turn({ type: 'response.create', model, store: false, input: `Reply with exactly: ${word}` });
      assert.equal(textOf(terminal(turn)), word);
    }
    const first = terminal(await client.turn({ type: 'response.create', model, store: false, input: 'The code word is slate.' }));
    const next = { type: 'response.create', model, store: false, previous_response_id: first.id, input: 'Which word?' };
    terminal(await client.turn(next));
    assert.match(sent(), /The code word is slate\./);
  });

  test(`Open Responses over ${model}: sockets: unknown ids, failed continuations, reconnections`, async () => {
    await using gateway = await testGateway(CONFIG);
    const client = await connect(gateway);
    const create = { type: 'response.create', model, store: false };
    const unknown = await client.turn({ ...create, previous_response_id: 'resp_openresponses_missing', input: 'x' });
    assert.equal(codeOf(unknown), 'previous_response_not_found');
    const { id } = terminal(await client.turn({ ...create, input: 'remember' }));
    const orphan = [{ type: 'function_call_output', call_id: 'call_openresponses_missing', output: 'none' }];
    assert.equal(codeOf(await client.turn({ ...create, previous_response_id: id, input: orphan })), 'tool_call_not_found');
    assert.equal(codeOf(await client.turn({ ...create, previous_response_id: id, input: 'x' })), 'previous_response_not_found');
    const kept = terminal(await client.turn({ ...create, input: 'remember' }));
    client.ws.close();
    const again = await connect(gateway);
    assert.equal(
      codeOf(await again.turn({ ...create, previous_response_id: kept.id, input: 'x' })),
      'previous_response_not_found',
    );
    terminal(await again.turn({ ...create, input: [user('Start anew.')] }));
  });

  test(`Open Responses over ${model}: compaction, and a new chain from it over a socket and every upstream`, async () => {
    await using gateway = await testGateway(CONFIG);
    const launch = user('We agreed to launch on Tuesday and notify support first.');
    const input = [launch, assistant('Understood.'), user([{ type: 'input_text', text: 'Compress this.', extra: 1.0 }])];
    const tools = [{ type: 'function', name: 'f', parameters: { type: 'object', properties: {} } }];
    simulator.enqueue(say('The launch is on Tuesday; support first.'));
    const answer = await gateway.post('/v1/responses/compact', { model, input, tools, prompt_cache_key: 'compact' });
    const text = await answer.text();
    assert.equal(answer.status, 200, text);
    const compacted: Response & { created_at: number } = JSON.parse(text);
    assert.match(sent(), /summary of this conversation/);
    assert.doesNotMatch(sent(), /"name":"f"/);
    assert.equal(compacted.object, 'response.compaction');
    assert.match(compacted.id, /^resp_mizu_/);
    assert.deepEqual(
      compacted.output.map(({ type, role }) => [type, role]),
      [
        ['message', 'user'],
        ['message', 'user'],
        ['compaction', undefined],
      ],
    );
    assert.equal(compacted.output[0]?.content?.[0]?.text, launch.content);
    for (const { id } of compacted.output) assert.match(id, /^(msg|cmp)_/);
    assert.match(compacted.output[2]?.encrypted_content ?? '', /^mz2\./);
    assert.deepEqual([compacted.usage.input_tokens, compacted.usage.output_tokens, compacted.usage.total_tokens], [40, 5, 45]);
    assert.equal(gateway.store.settled.at(-1)?.model, model);
    const chain = { input: [...compacted.output, user('Continue.')], tools: [] };
    for (const { name: next } of FORMS) {
      const client = await connect(gateway);
      terminal(await client.turn({ type: 'response.create', model: next, store: false, ...chain }));
      assert.match(sent(), /The launch is on Tuesday; support first\./);
      assert.doesNotMatch(sent(), /mz2\.|"compaction"/);
      client.ws.close();
    }
    // Of another account, or altered, it opens to nothing.
    const altered = compacted.output.map((item) =>
      item.type === 'compaction' ? { ...item, encrypted_content: 'mz2.AAAA' } : item,
    );
    const refused = await gateway.post('/v1/responses', { model, input: [...altered, user('Continue.')] });
    if (type !== 'responses') assert.equal(refused.status, 400);
    await refused.text();
  });

  test(`Open Responses over ${model}: a compaction without a model is refused; an empty or failed summary is no compaction`, async () => {
    await using gateway = await testGateway(CONFIG);
    assert.equal((await gateway.post('/v1/responses/compact', { input: [user('Compact this.')] })).status, 400);
    for (const reply of [{ pieces: [] }, { pieces: [{ type: 'text' as const, text: 'half' }], finish: 'length' as const }]) {
      simulator.enqueue({ reply });
      const answer = await gateway.post('/v1/responses/compact', { model, input: 'Compact this.' });
      assert.equal(answer.status, 502, await answer.text());
      gateway.running.gateway.dispatcher.health.keepOnly(new Set());
    }
  });
}

test('a model’s own setting makes its Channels compact by summary; without any, only responses Channels compact', async () => {
  const { channels } = formsConfig(FORMS, simulator.url);
  await using gateway = await testGateway({
    channels,
    models: { ...CONFIG.models, messages: { ...PRICE, compaction: 'summary' } },
  });
  const compact = async (model: string) => (await gateway.post('/v1/responses/compact', { model, input: 'x' })).status;
  assert.deepEqual([await compact('messages'), await compact('gemini'), await compact('responses')], [200, 503, 200]);
});
