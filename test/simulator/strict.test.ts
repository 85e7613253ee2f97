/** The simulated vendors refuse what the real ones refuse, and accept back what they issued themselves. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts';
import { ask, dataOf } from './ask.ts';

let sim: Simulator;
let other: Simulator;
before(async () => {
  sim = await startSimulator({ pace: { ms: 0 } });
  other = await startSimulator({ pace: { ms: 0 } });
});
after(async () => {
  await sim.close();
  await other.close();
});

interface Answer {
  readonly status: number;
  /** Vendor JSON, read as it comes. */
  readonly json: ReturnType<typeof JSON.parse>;
}
const post = async (path: string, body: object | string, at: Simulator = sim): Promise<Answer> => {
  const { status, text } = await ask(`${at.url}${path}`, body);
  return { status, json: JSON.parse(text) };
};

test('malformed JSON is a 400 in each dialect’s shape', async () => {
  const shapes: [string, (json: Answer['json']) => unknown][] = [
    ['/v1/chat/completions', (json) => json.error.type],
    ['/v1/responses', (json) => json.error.type],
    ['/v1/messages', (json) => json.type === 'error' && json.error.type],
    ['/v1beta/models/g:generateContent', (json) => json.error.status === 'INVALID_ARGUMENT' && 'invalid_request_error'],
  ];
  for (const [path, read] of shapes) {
    const { status, json } = await post(path, '{"model": ');
    assert.deepEqual([status, read(json)], [400, 'invalid_request_error'], path);
  }
});

test('chat: a tool message needs its call, a call needs its message', async () => {
  const user = { role: 'user', content: 'x' };
  const calls = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }],
  };
  const result = { role: 'tool', tool_call_id: 'call_1', content: 'done' };
  const status = async (...messages: object[]) => (await post('/v1/chat/completions', { model: 'm', messages })).status;
  assert.equal(await status(user, calls, result), 200);
  assert.equal(await status(user, result), 400);
  assert.equal(await status(user, calls, user), 400);
  assert.equal(await status(user, calls, { ...result, tool_call_id: 'call_2' }), 400);
  assert.equal(await status({ role: 'wizard', content: 'x' }), 400);
  assert.equal((await post('/v1/chat/completions', { model: 'm', messages: 5 })).json.error.param, 'messages');
});

test('chat of a DeepSeek model wants its reasoning back in a tool turn', async () => {
  const calls = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
  };
  const rest = [{ role: 'tool', tool_call_id: 'c', content: 'r' }];
  const body = (assistant: object) => ({
    model: 'deepseek-x',
    reasoning_effort: 'high',
    messages: [{ role: 'user', content: 'x' }, assistant, ...rest],
  });
  assert.equal((await post('/v1/chat/completions', body(calls))).status, 400);
  const answer = await post('/v1/chat/completions', body({ ...calls, reasoning_content: '' }));
  assert.equal(answer.status, 200);
  assert.ok(answer.json.choices[0].message.reasoning_content.length > 0);
});

const tool = {
  type: 'function',
  name: 'look',
  parameters: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] },
};

test('responses: its own encrypted reasoning comes back, foreign, changed and early values do not', async () => {
  const base = {
    model: 'm',
    store: false,
    reasoning: { effort: 'high', summary: 'auto' },
    include: ['reasoning.encrypted_content'],
    tools: [tool],
  };
  const user = { role: 'user', content: 'please look' };
  const first = await post('/v1/responses', { ...base, tool_choice: 'required', input: [user] });
  const [reasoning, call] = first.json.output;
  assert.deepEqual([reasoning.type, call.type], ['reasoning', 'function_call']);
  assert.ok(typeof JSON.parse(call.arguments).at === 'string');
  const output = { type: 'function_call_output', call_id: call.call_id, output: 'a green door' };
  const again = (item: object, at = sim) => post('/v1/responses', { ...base, input: [user, item, call, output] }, at);
  const second = await again(reasoning);
  assert.equal(second.status, 200);
  assert.match(JSON.stringify(second.json.output), /a green door/);
  for (const answer of [
    await again(reasoning, other),
    await again({ ...reasoning, encrypted_content: `${reasoning.encrypted_content}x` }),
  ]) {
    assert.deepEqual([answer.status, answer.json.error.code], [400, 'invalid_encrypted_content']);
  }
  const { encrypted_content: _, ...bare } = reasoning;
  assert.equal((await again(bare)).status, 404);
  assert.equal((await post('/v1/responses', { ...base, input: [user, reasoning] })).status, 400);
  const { text } = await ask(`${sim.url}/v1/responses`, { ...base, tool_choice: 'required', input: [user], stream: true });
  const events = dataOf(text) as Answer['json'][];
  const early = events.find(({ type }) => type === 'response.output_item.added').item;
  const done = events.find(({ type }) => type === 'response.output_item.done').item;
  const final = events.at(-1).response.output[0];
  assert.equal(new Set([early, done, final].map(({ encrypted_content }) => encrypted_content)).size, 3);
  const third = events.at(-1).response.output[1];
  const replay = (item: object) =>
    post('/v1/responses', { ...base, input: [user, item, third, { ...output, call_id: third.call_id }] });
  assert.deepEqual(
    [
      (await replay(done)).status,
      (await replay(final)).status,
      (await replay({ ...done, encrypted_content: early.encrypted_content })).status,
    ],
    [200, 200, 400],
  );
});

test('responses: outputs need calls, calls need outputs, previous_response_id is remembered only when stored', async () => {
  const body = (...input: object[]) => ({ model: 'm', input });
  const user = { role: 'user', content: 'x' };
  const orphan = await post('/v1/responses', body(user, { type: 'function_call_output', call_id: 'c', output: 'o' }));
  assert.match(orphan.json.error.message, /No tool call found/);
  const search = {
    type: 'tool_search_call',
    call_id: 'c',
    execution: 'client',
    arguments: { queries: ['x'] },
    status: 'completed',
  };
  const searched = await post('/v1/responses', body(user, search, { type: 'function_call_output', call_id: 'c', output: 'o' }));
  assert.equal(searched.status, 200, 'recorded: a search that the client ran is answered as a function is');
  const waiting = await post('/v1/responses', body(user, { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' }));
  assert.match(waiting.json.error.message, /No tool output found/);
  const stored = await post('/v1/responses', { model: 'm', input: 'look', tools: [tool], tool_choice: 'required' });
  const call = stored.json.output.at(-1);
  const next = {
    model: 'm',
    previous_response_id: stored.json.id,
    input: [{ type: 'function_call_output', call_id: call.call_id, output: 'seen' }],
  };
  assert.equal((await post('/v1/responses', next)).status, 200);
  const unstored = await post('/v1/responses', { model: 'm', input: 'x', store: false });
  const lost = await post('/v1/responses', { model: 'm', input: 'x', previous_response_id: unstored.json.id });
  assert.equal(lost.json.error.code, 'previous_response_not_found');
});

test('responses: a stored prompt may bring the input; without one it is missing', async () => {
  const prompt = { id: 'pmpt_1', variables: { question: 'Why?' } };
  assert.equal((await post('/v1/responses', { model: 'm', prompt })).status, 200);
  const { status, json } = await post('/v1/responses', { model: 'm' });
  assert.deepEqual([status, json.error.param], [400, 'input']);
});

test('responses: compact keeps user messages and its item is accepted back', async () => {
  const user = { role: 'user', content: 'remember' };
  const compact = await post('/v1/responses/compact', { model: 'm', input: [user, { role: 'assistant', content: 'yes' }] });
  assert.deepEqual(
    compact.json.output.map(({ type }: { type: string }) => type),
    ['message', 'compaction'],
  );
  const next = await post('/v1/responses', { model: 'm', input: [...compact.json.output, user] });
  assert.equal(next.status, 200);
  assert.equal(
    (await post('/v1/responses', { model: 'm', input: [...compact.json.output, user] }, other)).json.error.code,
    'invalid_encrypted_content',
  );
});

test('messages: results follow calls, roles alternate, text is not empty', async () => {
  const user = { role: 'user', content: 'x' };
  const call = { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }] };
  const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'r' };
  const say = async (...messages: object[]) => {
    const tools = [{ name: 'f', input_schema: { type: 'object' } }];
    const { status, json } = await post('/v1/messages', { model: 'm', max_tokens: 50, messages, tools });
    return status === 200 ? 200 : json.error.message;
  };
  assert.equal(await say(user, call, { role: 'user', content: [result] }), 200);
  const bare = { model: 'm', max_tokens: 50, messages: [user, call, { role: 'user', content: [result] }] };
  assert.match((await post('/v1/messages', bare)).json.error.message, /must define tools/);
  for (const blank of [
    [{ role: 'user', content: [{ type: 'text', text: '\n' }] }],
    [user, { role: 'assistant', content: [{ type: 'text', text: ' \n' }] }, user],
    [user, call, { role: 'user', content: [{ ...result, content: [{ type: 'text', text: ' ' }] }] }],
  ])
    assert.match(await say(...blank), /non-whitespace/);
  assert.match(await say(user, call, user), /without `tool_result` blocks immediately after: toolu_1/);
  assert.match(await say(user, call), /without `tool_result`/);
  assert.match(await say({ role: 'user', content: [result] }), /unexpected `tool_use_id`/);
  assert.match(
    await say(user, call, { role: 'user', content: [{ type: 'text', text: 'a' }, result] }),
    /must come before other content/,
  );
  assert.equal(await say(user, user), 200, 'turns of one role are one');
  assert.match(await say({ role: 'assistant', content: 'x' }), /first message must use the "user" role/);
  assert.match(await say({ role: 'user', content: [{ type: 'text', text: '' }] }), /non-empty/);
  assert.match(await say(user, { role: 'assistant', content: 'x ' }), /trailing whitespace/);
  const thinking = [
    { type: 'thinking', thinking: 'a', signature: 'Zm9v' },
    { type: 'text', text: 'b' },
  ];
  assert.match(await say(user, { role: 'assistant', content: thinking }, user), /Invalid `signature`/);
});

test('messages: sampling, stop sequences, formats and strict tools within the vendor’s ranges', async () => {
  const why = async (more: object) => {
    const body = { model: 'm', max_tokens: 50, messages: [{ role: 'user', content: 'x' }], ...more };
    const { status, json } = await post('/v1/messages', body);
    return status === 200 ? 'taken' : json.error.message;
  };
  const inFormat = (schema: object) => why({ output_config: { format: { type: 'json_schema', schema } } });
  const closed = { type: 'object', properties: { a: { type: 'number' } }, additionalProperties: false };
  assert.equal(await why({ temperature: 1 }), 'taken');
  assert.match(await why({ temperature: 1.5 }), /temperature/);
  assert.match(await why({ stop_sequences: ['\n\n'] }), /non-whitespace/);
  assert.equal(await inFormat(closed), 'taken');
  assert.match(await inFormat({ ...closed, additionalProperties: undefined }), /must be explicitly set to false/);
  assert.match(await inFormat({ ...closed, properties: { a: { type: 'number', minimum: 1 } } }), /'minimum' is not supported/);
  assert.match(await inFormat({ ...closed, properties: { a: {} } }), /must have a 'type'/);
  const tool = { name: 'f', input_schema: { ...closed, additionalProperties: true } };
  assert.equal(await why({ tools: [tool] }), 'taken');
  assert.match(await why({ tools: [{ ...tool, strict: true }] }), /must be explicitly set to false/);
});

test('gemini: signatures of the current turn, the skip sentinel, foreign values', async () => {
  const path = '/v1beta/models/gemini-3-pro:generateContent';
  const tools = [{ functionDeclarations: [{ name: 'look', parametersJsonSchema: tool.parameters }, { name: 'listen' }] }];
  const user = { role: 'user', parts: [{ text: 'look and listen' }] };
  const [look, listen] = ['look', 'listen'].map((name) => ({ type: 'tool' as const, name, arguments: '{}' }));
  assert.ok(look !== undefined && listen !== undefined);
  sim.enqueue({ reply: { pieces: [{ ...look, signature: true }, listen] } });
  const first = await post(path, { contents: [user], tools });
  const { content } = first.json.candidates[0];
  assert.deepEqual(
    content.parts.map((part: { thoughtSignature?: string }) => part.thoughtSignature !== undefined),
    [true, false],
  );
  const results = {
    role: 'user',
    parts: ['look', 'listen'].map((name) => ({ functionResponse: { name, response: { output: `${name} done` } } })),
  };
  const say = (model: object, at = sim) => post(path, { contents: [user, model, results], tools }, at);
  const second = await say(content);
  assert.equal(second.status, 200);
  assert.match(JSON.stringify(second.json), /look done/);
  assert.match(JSON.stringify(second.json), /"thoughtSignature"/);
  const [signed, plain] = content.parts;
  const resigned = (thoughtSignature: string) => ({ ...content, parts: [{ ...signed, thoughtSignature }, plain] });
  const { thoughtSignature, ...bare } = signed;
  const missing = await say({ ...content, parts: [bare, plain] });
  assert.match(missing.json.error.message, /Function call is missing a thought_signature in functionCall parts/);
  assert.equal((await say(resigned('skip_thought_signature_validator'))).status, 200);
  assert.equal((await say(content, other)).json.error.message, 'Corrupted thought signature.');
  assert.match(
    (await say({ ...content, parts: [bare, { ...plain, thoughtSignature }] })).json.error.message,
    /thought.signature/,
  );
  const old = {
    contents: [user, { ...content, parts: [bare, plain] }, results, { role: 'model', parts: [{ text: 'ok' }] }, user],
    tools,
  };
  assert.equal((await post(path, old)).status, 200);
  const half = await post(path, { contents: [user, content, { ...results, parts: results.parts.slice(1) }], tools });
  assert.match(half.json.error.message, /number of function response parts/);
});

test('gemini: unknown names and schema words outside the subset are refused', async () => {
  const path = '/v1beta/models/g:generateContent';
  const contents = [{ role: 'user', parts: [{ text: 'x' }] }];
  const message = async (body: object) => (await post(path, { contents, ...body })).json.error?.message;
  assert.match(await message({ messages: [] }), /Unknown name "messages"/);
  assert.match(await message({ generationConfig: { max_tokens: 1 } }), /Unknown name "max_tokens"/);
  const schema = { type: 'object', properties: { a: { type: 'object', additionalProperties: false } } };
  assert.match(
    await message({ tools: [{ functionDeclarations: [{ name: 'f', parameters: schema }] }] }),
    /Unknown name "additionalProperties" at .*properties\[a\]/,
  );
  assert.equal(await message({ tools: [{ functionDeclarations: [{ name: 'f', parametersJsonSchema: schema }] }] }), undefined);
  assert.match(await message({ generationConfig: { responseLogprobs: true, logprobs: 21 } }), /range \[0, 20\]/);
});

test('gemini streams: CRLF, usage that grows, a finish in the last chunk, logprobs that sum', async () => {
  const config = { responseLogprobs: true, logprobs: 2, maxOutputTokens: 6 };
  const body = { contents: [{ role: 'user', parts: [{ text: 'x' }] }], generationConfig: config };
  const { text, headers } = await ask(`${sim.url}/v1beta/models/g:streamGenerateContent?alt=sse`, body);
  assert.equal(headers['content-type'], 'text/event-stream');
  assert.ok(text.endsWith('\r\n\r\n') && !text.includes('[DONE]'));
  const chunks = dataOf(text) as Answer['json'][];
  const finishes = chunks.map(({ candidates }) => candidates[0].finishReason);
  assert.deepEqual(
    finishes.slice(0, -1).filter((finish) => finish !== undefined),
    [],
  );
  const last = chunks.at(-1).candidates[0];
  const said = chunks.map(({ candidates }) => candidates[0].content.parts[0].text).join('');
  const { chosenCandidates } = last.logprobsResult;
  assert.equal(chosenCandidates.map(({ token }: { token: string }) => token).join(''), said);
  assert.equal(
    chunks.at(-1).usageMetadata.totalTokenCount,
    chunks.at(-1).usageMetadata.promptTokenCount + chunks.at(-1).usageMetadata.candidatesTokenCount,
  );
});

test('a wrong key is refused in each dialect', async (t) => {
  const guarded = await startSimulator({ apiKey: 'right' });
  t.after(() => guarded.close());
  const status = async (path: string, headers: Record<string, string>) =>
    (await ask(`${guarded.url}${path}`, { model: 'm' }, { headers })).status;
  assert.equal(await status('/v1/chat/completions', { authorization: 'Bearer wrong' }), 401);
  assert.equal(await status('/v1/messages', { 'x-api-key': 'wrong' }), 401);
  assert.equal(await status('/v1beta/models/g:generateContent', { 'x-goog-api-key': 'wrong' }), 400);
  assert.equal(await status('/v1/embeddings', { authorization: 'Bearer right' }), 400);
});
