import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../../src/codecs/canonical/error.ts';
import { fold } from '../../../../src/codecs/canonical/fold.ts';
import { isObject } from '../../../../src/codecs/canonical/json.ts';
import { chatClient } from '../../../../src/codecs/chat/index.ts';
import { responsesClient, responsesUpstream } from '../../../../src/codecs/responses/index.ts';
import {
  CREATED,
  decodeAll,
  decodeContext,
  encodeAll,
  framesOf,
  objectFrom,
  open,
  OWNER,
  refusalOf,
  responseContext,
  terminalOf,
} from '../support.ts';

const decodeBody = (text: string) => responsesUpstream.decodeResponse(text, decodeContext());
const OUTPUT =
  '[{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hi","annotations":[]}]}]';

test('decodeResponse: spec rule 15', () => {
  const reason = (text: string) => refusalOf(() => decodeBody(text)).details.reason;
  assert.equal(reason('{}'), 'undecodable');
  assert.equal(reason('{"error":{"message":"x","code":"server_error"}}'), 'error_event');
  assert.equal(reason('{"error":{"message":"x"},"status":"weird","output":[]}'), 'error_event');
  assert.equal(reason('{"status":"in_progress","output":[]}'), 'undecodable');
  assert.equal(reason('{"status":"queued","output":[]}'), 'undecodable');
  assert.equal(reason('{"status":"completed"}'), 'undecodable');
  assert.equal(reason('{"output":{}}'), 'undecodable');
  assert.equal(reason('[1]'), 'undecodable');
  assert.equal(reason('{"status":"completed","output":[{"type":'), 'undecodable');
  assert.equal(fold(decodeBody(`{"output":${OUTPUT}}`).events).outcome.status, 'completed');
  assert.equal(fold(decodeBody(`{"error":null,"status":null,"output":[]}`).events).outcome.status, 'completed');
});

test('decodeResponse: of an answer that was cut only what says so is complete, and a call keeps the arguments it has', () => {
  const call = (more: string) => `{"type":"function_call","id":"fc_1","call_id":"c","name":"look","arguments":""${more}}`;
  const ends = (status: string, more: string) =>
    fold(decodeBody(`{"status":"${status}","output":[${call(more)}]}`).events).items.map(({ item, status }) => [
      item.kind === 'toolCall' && item.input,
      status,
    ]);
  assert.deepEqual(ends('completed', ''), [['{}', 'completed']]);
  assert.deepEqual(ends('incomplete', ''), [['', 'incomplete']]);
  assert.deepEqual(ends('incomplete', ',"status":"in_progress"'), [['', 'incomplete']]);
  assert.deepEqual(ends('incomplete', ',"status":"completed"'), [['{}', 'completed']]);
});

test('decodeResponse: reasoning, whose items say no status, was not what was cut where something follows it', () => {
  const reasoning = '{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm"}]}';
  const ends = (output: string) =>
    fold(decodeBody(`{"status":"incomplete","output":[${output}]}`).events).items.map(({ status }) => status);
  const message = OUTPUT.slice(1, -1).replace('completed', 'incomplete');
  assert.deepEqual(ends(`${reasoning},${message}`), ['completed', 'incomplete']);
  assert.deepEqual(ends(`${message},${reasoning}`), ['incomplete', 'incomplete']);
  assert.deepEqual(ends(`${reasoning.replace('"summary"', '"status":"incomplete","summary"')},${message}`), [
    'incomplete',
    'incomplete',
  ]);
  const { steps } = decodeAll(
    framesOf(CREATED, `{"type":"response.incomplete","response":{"status":"incomplete","output":[${reasoning},${message}]}}`),
  );
  const ended = steps.flatMap(({ events }) => events.flatMap((event) => (event.type === 'item.end' ? [event.status] : [])));
  assert.deepEqual(ended, ['completed', 'incomplete']);
});

test("decodeResponse: a custom call that the vendor ran itself is nobody else's to answer", () => {
  const call = '{"type":"custom_tool_call","id":"ctc_1","call_id":"xs_call_1","name":"x_keyword_search","input":"{}"}';
  const read = (tools: string) => fold(decodeBody(`{"output":[${call}]${tools}}`).events);
  assert.deepEqual(read(',"tools":[{"type":"x_search"}]').outcome, { status: 'completed', stop: 'end' });
  assert.equal(read(',"tools":[{"type":"x_search"}]').items[0]?.item.kind, 'native');
  for (const tools of [
    '',
    ',"tools":[]',
    ',"tools":[{"type":"function","name":"f"}]',
    ',"tools":[{"type":"x_search"},{"type":"namespace"}]',
  ])
    assert.equal(read(tools).items[0]?.item.kind, 'toolCall', tools);
});

test("decodeResponse: calls of server tools by the vendor's counters, under each of the names that xAI gives them, else by the items", () => {
  const items = '[{"type":"web_search_call","id":"ws_1","status":"completed"},{"type":"x_search_call","id":"xs_1"}]';
  const read = (usage: string, more = '') => [
    ...(fold(decodeBody(`{"output":${items},"usage":{"input_tokens":9,"output_tokens":5${usage}}${more}}`).events).usage
      ?.meters ?? []),
  ];
  const counted = [
    ['web_search', 3],
    ['x_search', 2],
  ];
  assert.deepEqual(read(',"server_side_tool_usage_details":{"web_search_calls":3,"x_search_calls":2,"mcp_calls":0}'), counted);
  assert.deepEqual(read(',"server_side_tool_usage":{"web_search":3,"x_search_requests":2}'), counted);
  assert.deepEqual(
    read('', ',"server_side_tool_usage":{"SERVER_SIDE_TOOL_WEB_SEARCH":3,"SERVER_SIDE_TOOL_X_SEARCH":2}'),
    counted,
  );
  assert.deepEqual(read(''), [
    ['web_search', 1],
    ['x_search', 1],
  ]);
});

test('decodeResponse: usage in the spelling of chat, its details too', () => {
  const usage =
    '{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":2},"total_tokens":14}';
  const { input, cacheRead, output, reasoning } = fold(decodeBody(`{"output":[],"usage":${usage}}`).events).usage ?? {};
  assert.deepEqual([input, cacheRead, output, reasoning], [5, 4, 5, 2]);
});

test('decodeResponse: cache writes inside the input, by lifetime where the vendor says it', () => {
  const read = (details: string) =>
    fold(
      decodeBody(
        `{"output":[],"usage":{"input_tokens":1000,"output_tokens":5,"total_tokens":1005,"input_tokens_details":{${details}}}}`,
      ).events,
    ).usage;
  const plain = { input: 600, cacheRead: 100, output: 5 };
  for (const key of ['cache_write_tokens', 'cache_creation_tokens', 'cache_creation_input_tokens'])
    assert.deepEqual(read(`"cached_tokens":100,"${key}":300`), { ...plain, cacheWrite: 300 }, key);
  assert.deepEqual(
    read('"cached_tokens":100,"cache_creation_input_tokens":300,"cache_creation":{"ephemeral_5m_input_tokens":300}'),
    { ...plain, cacheWrite: 0, cacheWrite5m: 300, cacheWrite1h: 0 },
  );
});

test("decodeResponse: a chat client's custom tool that went out as a function comes back as what it is", () => {
  const tools = [
    { type: 'custom', custom: { name: 'p', input_schema: { type: 'object' } } },
    { type: 'function', function: { name: 'f' } },
  ];
  const text = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }], tools });
  const request = chatClient.decodeRequest(text, objectFrom(text), { open });
  const call = (name: string) => `{"type":"function_call","call_id":"c_${name}","name":"${name}","arguments":"{\\"a\\":1}"}`;
  const { events } = responsesUpstream.decodeResponse(`{"output":[${call('p')},${call('f')}]}`, decodeContext(request));
  const toolTypes = fold(events).items.map(({ item }) => item.kind === 'toolCall' && [item.toolType, item.input]);
  assert.deepEqual(toolTypes, [
    ['custom', '{"a":1}'],
    ['function', '{"a":1}'],
  ]);
});

test('encodeResponse: the same dialect is spliced, a missing status is completed', () => {
  const text = `{"id":"resp_up", "object":"response","created_at":5,"model":"up", "output":${OUTPUT}, "x": 1.0, "usage": {"input_tokens":1,"input_tokens_details":{"cached_tokens": 0},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":3.0,"cost":0.1}}`;
  const step = decodeBody(text);
  const body = responsesClient.encodeResponse(fold(step.events), step.native, responseContext());
  const id = `resp_mizu_${'0'.repeat(32)}`;
  assert.equal(
    body,
    `{"id":"${id}", "object":"response","created_at":5,"model":"logical-model", "output":${OUTPUT}, "x": 1.0, "usage": {"input_tokens":1,"input_tokens_details":{"cached_tokens": 0},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":3.0},"status":"completed"}`,
  );
});

test('encodeResponse: the same dialect has the envelope without which the official SDK finds no text', () => {
  for (const members of ['', ',"object":"","created_at":null']) {
    const step = decodeBody(`{"output":${OUTPUT}${members}}`);
    const context = responseContext();
    const body = objectFrom(responsesClient.encodeResponse(fold(step.events), step.native, context));
    assert.deepEqual([body['object'], body['created_at'], body['status']], ['response', context.createdAt, 'completed']);
  }
});

test('decodeResponse: an answer without a status that says why it is incomplete is no complete one', () => {
  const outcomeOf = (more: string) => fold(decodeBody(`{"output":${OUTPUT}${more}}`).events).outcome;
  assert.deepEqual(outcomeOf(',"incomplete_details":{"reason":"content_filter"}'), {
    status: 'incomplete',
    reason: 'content_filter',
    native: 'content_filter',
    details: { reason: 'content_filter' },
  });
  for (const details of ['null', '{}', '{"reason":null}'])
    assert.equal(outcomeOf(`,"status":null,"incomplete_details":${details}`).status, 'completed', details);
  assert.equal(outcomeOf(',"status":"completed","incomplete_details":{"reason":"max_output_tokens"}').status, 'completed');
});

test('a whole answer that is said as a stream keeps its messages apart', () => {
  const message = (id: string, text: string) =>
    `{"type":"message","id":"${id}","role":"assistant","content":[{"type":"refusal","refusal":"No"},{"type":"output_text","text":"${text}"}]}`;
  const { events } = decodeBody(
    `{"id":"r","status":"completed","output":[${message('msg_1', 'one')},${message('msg_2', 'two')}]}`,
  );
  const output = terminalOf(encodeAll([{ events }]))['output'];
  assert.deepEqual(
    (Array.isArray(output) ? output : [])
      .filter(isObject)
      .map(({ id, content }) => [id, Array.isArray(content) && content.length]),
    [
      ['msg_1', 2],
      ['msg_2', 2],
    ],
  );
});

test('encodeResponse: the same dialect has the members that the interface promises (R15)', () => {
  const said = (text: string) => {
    const step = decodeBody(text);
    return objectFrom(responsesClient.encodeResponse(fold(step.events), step.native, responseContext()));
  };
  const zeros = { input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } };
  for (const [usage, expected] of [
    ['{"input_tokens":7,"output_tokens":2}', { input_tokens: 7, output_tokens: 2, total_tokens: 9, ...zeros }],
    [
      '{"input_tokens":"7","output_tokens":"2","total_tokens":"9","input_tokens_details":null,"output_tokens_details":{"x":1}}',
      {
        input_tokens: 7,
        output_tokens: 2,
        total_tokens: 9,
        ...{ ...zeros, output_tokens_details: { x: 1, reasoning_tokens: 0 } },
      },
    ],
    [
      '{"prompt_tokens":7,"completion_tokens":2,"input_tokens_details":{"cached_tokens":3}}',
      {
        ...{ prompt_tokens: 7, completion_tokens: 2, input_tokens: 7, output_tokens: 2, total_tokens: 9 },
        ...{ ...zeros, input_tokens_details: { cached_tokens: 3 } },
      },
    ],
  ] as const)
    assert.deepEqual(said(`{"status":"completed","output":[],"usage":${usage}}`)['usage'], expected, usage);
  assert.equal(said('{"status":"completed","output":[],"usage":null}')['usage'], null);
  for (const details of ['null', '{}', '{"reason":null}']) {
    const { incomplete_details } = said(`{"status":"incomplete","output":[],"incomplete_details":${details}}`);
    assert.deepEqual(incomplete_details, { reason: 'max_output_tokens' }, details);
  }
  assert.deepEqual(said('{"status":"incomplete","output":[]}')['incomplete_details'], { reason: 'max_output_tokens' });
  assert.deepEqual(said('{"status":"failed","error":{"code":"server_error","message":"x"}}')['output'], []);
  const nameless = '{"type":"reasoning","summary":[]},{"type":"message","role":"assistant","status":"completed","content":[]}';
  const { output: named } = said(`{"status":"completed","output":[${nameless}]}`);
  assert.match(JSON.stringify(named), /"id":"rs_[0-9a-f]{32}".*"id":"msg_[0-9a-f]{32}"/);
  const hollow =
    '{"type":"message","id":"m","role":"assistant","status":"completed"},{"type":"reasoning","id":"r","summary":null},' +
    '{"type":"function_call","id":"f","call_id":"c","name":"run","status":"completed"}';
  assert.deepEqual(said(`{"status":"completed","output":[${hollow}]}`)['output'], [
    { type: 'message', id: 'm', role: 'assistant', status: 'completed', content: [] },
    { type: 'reasoning', id: 'r', summary: [] },
    { type: 'function_call', id: 'f', call_id: 'c', name: 'run', status: 'completed', arguments: '{}' },
  ]);
  const bare =
    '{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hi"}]}';
  assert.deepEqual(said(`{"status":"completed","output":[${bare}]}`)['output'], [
    { ...objectFrom(bare), content: [{ type: 'output_text', text: 'Hi', annotations: [] }] },
  ]);
});

test('encodeResponse: a failure keeps partial output, usage and a sanitised error', () => {
  const text = `{"id":"r","status":"failed","model":"up","output":${OUTPUT},"usage":{"input_tokens":1,"output_tokens":2},"error":{"code":"server_error","message":"at https://host.example"}}`;
  const step = decodeBody(text);
  const whole = fold(step.events);
  assert.equal(whole.outcome.status, 'failed');
  for (const native of [step.native, undefined]) {
    const body = objectFrom(responsesClient.encodeResponse(whole, native, responseContext()));
    assert.equal(body['status'], 'failed');
    assert.ok(!JSON.stringify(body).includes('host.example'));
    assert.ok(JSON.stringify(body['output']).includes('"Hi"'));
    assert.ok(JSON.stringify(body['usage']).includes('"input_tokens":1'));
  }
});

test('a whole answer of the same dialect that is said as a stream, and the reverse, keeps the ids of its items and its time', () => {
  const output = `[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm"}]},${OUTPUT.slice(1, -1)},{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}"}]`;
  const { events } = decodeBody(`{"id":"r","created_at":5,"status":"completed","output":${output}}`);
  const bodies = [
    objectFrom(responsesClient.encodeResponse(fold(events), undefined, responseContext())),
    terminalOf(encodeAll([{ events }])),
  ];
  for (const body of bodies) {
    assert.equal(body['created_at'], 5);
    assert.ok(Array.isArray(body['output']));
    assert.deepEqual(
      body['output'].map((item) => item['id']),
      ['rs_1', 'msg_1', 'fc_1'],
    );
  }
  const elsewhere = { ...responseContext(), owner: { ...OWNER, channelType: 'chat_completion' as const } };
  const body = objectFrom(responsesClient.encodeResponse(fold(events), undefined, elsewhere));
  assert.equal(body['created_at'], elsewhere.createdAt);
  assert.ok(!/"(rs_1|msg_1|fc_1)"/.test(JSON.stringify(body)), 'ids of another dialect are made anew');
});

test('encodeResponse: an item that its upstream gave no id has one that begins as the vendor’s own do', () => {
  const prefixes = {
    ...{ message: 'msg_', reasoning: 'rs_', function_call: 'fc_', custom_tool_call: 'ctc_', image_generation_call: 'ig_' },
    ...{ web_search_call: 'ws_', file_search_call: 'fs_', code_interpreter_call: 'ci_', shell_call: 'sh_' },
    ...{ mcp_call: 'mcp_', mcp_list_tools: 'mcpl_', mcp_approval_request: 'mcpr_', apply_patch_call: 'apc_' },
    ...{ tool_search_call: 'tsc_', tool_search_output: 'tso_', yet_another: 'item_' },
  };
  const members = { status: 'completed', role: 'assistant', content: [], summary: [], name: 'f', arguments: '{}', input: '' };
  const output = Object.keys(prefixes).map((type, at) => ({ type, ...members, call_id: `call_${at}` }));
  const { events, native } = decodeBody(JSON.stringify({ id: 'r', status: 'completed', output }));
  const body = objectFrom(responsesClient.encodeResponse(fold(events), native, responseContext()));
  const items = Array.isArray(body['output']) ? body['output'].filter(isObject) : [];
  assert.deepEqual(Object.fromEntries(items.map(({ type, id }) => [type, String(id).replace(/[0-9a-f]{32}$/, '')])), prefixes);
});

test('encodeError: the shape of the protocol, the type by status', () => {
  const body = (error: GatewayError) => objectFrom(responsesClient.encodeError(error, 'req_1'))['error'];
  assert.deepEqual(body(new GatewayError('insufficient_balance', 'Empty.')), {
    message: 'Empty.',
    type: 'insufficient_quota',
    param: null,
    code: 'insufficient_balance',
  });
  assert.deepEqual(body(new GatewayError('previous_response_not_found', 'No.', { param: 'previous_response_id' })), {
    message: 'No.',
    type: 'invalid_request_error',
    param: 'previous_response_id',
    code: 'previous_response_not_found',
  });
});

test('decodeResponse: a text with more citations than a call takes arguments', () => {
  const cited = { type: 'url_citation', url: 'https://a.example/', title: 'A', start_index: 0, end_index: 1 };
  const annotations = Array.from({ length: 300_000 }, () => cited);
  const content = [{ type: 'output_text', text: 'x', annotations }];
  const body = {
    id: 'r',
    object: 'response',
    status: 'completed',
    output: [{ type: 'message', id: 'm', role: 'assistant', content }],
  };
  const { events } = responsesUpstream.decodeResponse(JSON.stringify(body), decodeContext());
  const item = fold(events).items[0]?.item;
  assert.equal(item?.kind === 'text' ? item.citations?.length : undefined, annotations.length);
});
