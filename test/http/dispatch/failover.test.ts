import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { gzipSync } from 'node:zlib';
import {
  type FakeAnswer,
  fakeUpstream,
  jsonAnswer,
  openStream,
  rawAnswer,
  sayMessages,
  startMessage,
  wholeMessage,
} from '../../support/fake-upstream.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { ask, channel, eventually, MODELS, testGateway } from '../../support/test-gateway.ts';

const error = (type: string, message = 'no') => ({ type: 'error', error: { type, message } });

/** Every way of failing before the commit point, in a stream. */
const FAULTS: Record<string, FakeAnswer> = {
  'connection reset': ({ socket }) => void socket.resetAndDestroy(),
  'closed without an answer': ({ socket }) => void socket.destroy(),
  '500': jsonAnswer(500, error('api_error')),
  '502 with HTML': rawAnswer(502, { 'content-type': 'text/html' }, '<html>bad gateway</html>'),
  '529': jsonAnswer(529, error('overloaded_error')),
  '408': jsonAnswer(408, error('timeout_error')),
  '429': jsonAnswer(429, error('rate_limit_error')),
  '401': jsonAnswer(401, error('authentication_error')),
  '402': jsonAnswer(402, error('billing_error')),
  '403': jsonAnswer(403, error('permission_error')),
  '404': jsonAnswer(404, error('not_found_error')),
  '400': jsonAnswer(400, error('invalid_request_error')),
  'a redirect': rawAnswer(302, { location: 'http://127.0.0.1:1/' }, ''),
  '200 with HTML': rawAnswer(200, { 'content-type': 'text/html' }, '<!doctype html><html></html>'),
  '200 with an error object': jsonAnswer(200, error('overloaded_error')),
  '200 with an error written into the stream': rawAnswer(
    200,
    { 'content-type': 'text/event-stream' },
    '{"error":{"message":"x"}}\n',
  ),
  '200 with an error in a field that no event has': rawAnswer(
    200,
    { 'content-type': 'text/event-stream' },
    'error: {"code":500,"message":"x","type":"server_error"}\n\ndata: [DONE]\n\n',
  ),
  '200 with nothing': rawAnswer(200, { 'content-type': 'text/event-stream' }, ''),
  '200 with garbage': rawAnswer(200, { 'content-type': 'text/event-stream' }, 'data: {\n\n'),
  'an error as first event': ({ socket }) => {
    const stream = openStream(socket);
    stream.event('error', error('overloaded_error'));
    stream.end();
  },
  'an error after message_start': ({ socket }) => {
    const stream = openStream(socket);
    stream.event('message_start', {
      type: 'message_start',
      message: { id: 'x', type: 'message', role: 'assistant', content: [], model: 'up', usage: { input_tokens: 1 } },
    });
    stream.event('error', error('overloaded_error'));
    stream.end();
  },
  'gzip that nobody asked for': ({ socket }) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 4\r\n\r\n');
    socket.write(Buffer.from([0x1f, 0x8b, 8, 0]));
  },
};

for (const [name, fault] of Object.entries(FAULTS)) {
  for (const stream of [true, false]) {
    test(`E7, F1, F6, F9, F14: ${name}: the next channel answers (${stream ? 'stream' : 'whole'})`, async () => {
      const sick = await fakeUpstream(fault);
      const well = await fakeUpstream(stream ? sayMessages('fine') : jsonAnswer(200, wholeMessage('fine')));
      await using gateway = await testGateway({
        channels: [channel(sick.url), channel(well.url, { id: 'two', priority: 1 })],
        models: MODELS,
      });
      const response = await gateway.post('/v1/messages', ask({ stream }));
      assert.equal(response.status, 200);
      const text = await response.text();
      assert.match(text, /fine/);
      assert.equal(text.match(/event: message_start/g)?.length ?? 1, 1, 'one answer, not two');
      await eventually(() => gateway.store.settled.length === 1, 'settlement');
      const attempts = gateway.store.settled[0]?.attempts ?? [];
      assert.deepEqual(
        attempts.map(({ channelId }) => channelId),
        ['one', 'two'],
      );
      assert.ok(attempts[0]?.errorCode);
      await Promise.all([sick.close(), well.close()]);
    });

    test(`F1, F6, F9, F14: ${name}: alone it is the documented error (${stream ? 'stream' : 'whole'})`, async () => {
      await using sick = await fakeUpstream(fault);
      await using gateway = await testGateway({ channels: [channel(sick.url)], models: MODELS });
      const response = await gateway.post('/v1/messages', ask({ stream }));
      assert.equal(response.status, name === '400' ? 400 : 502);
      assert.match(await response.text(), /^\{"type":"error","error":\{/);
      await eventually(() => gateway.store.settled.length === 1, 'settlement');
      assert.equal(gateway.store.settled[0]?.status, 'error');
      assert.equal(gateway.store.settled[0]?.charge, undefined, 'a failure is free');
      assert.equal(gateway.store.held.size, 0);
    });
  }
}

test('F6: a header that the upstream sends twice is read once', async () => {
  const twice = (type: string, text: string, to: { write(bytes: string): void }): void =>
    to.write(
      `HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-type: ${type}\r\nx-request-id: up_1\r\nx-request-id: up_1\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
    );
  await using upstream = await fakeUpstream(({ socket }) =>
    twice('application/json', JSON.stringify(wholeMessage('fine')), socket),
  );
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
  const whole = await gateway.post('/v1/messages', ask());
  assert.match(await whole.text(), /fine/);
  assert.equal(whole.status, 200);
  upstream.answer = ({ socket }) => twice('text/html', '<html>no</html>', socket);
  assert.equal((await gateway.post('/v1/messages', ask({ stream: true }))).status, 502);
  assert.equal(gateway.store.settled[0]?.attempts[0]?.upstreamRequestId, 'up_1');
});

test('F10: the words of a refusal are read, compressed or not', async () => {
  const words = gzipSync(JSON.stringify(error('invalid_request_error', 'max_tokens is too large')));
  await using upstream = await fakeUpstream(({ socket }) => {
    socket.write(`HTTP/1.1 400 X\r\ncontent-encoding: gzip\r\ncontent-length: ${words.length}\r\n\r\n`);
    socket.write(words);
  });
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
  const response = await gateway.post('/v1/messages', ask());
  assert.equal(response.status, 400);
  assert.match(await response.text(), /"message":"max_tokens is too large"/);
});

test('F2: after the commit point there is no other channel: the failure is words of the stream', async () => {
  const sick = await fakeUpstream(({ socket }) => {
    const stream = openStream(socket);
    startMessage(stream);
    stream.event('content_block_delta', { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'half' } });
    setTimeout(() => void socket.destroy(), 20);
  });
  const well = await fakeUpstream(sayMessages('other'));
  await using gateway = await testGateway({
    channels: [channel(sick.url), channel(well.url, { id: 'two', priority: 1 })],
    models: MODELS,
  });
  const text = await (await gateway.post('/v1/messages', ask({ stream: true }))).text();
  assert.match(text, /half/);
  assert.match(text, /event: error\n/);
  assert.doesNotMatch(text, /other|message_stop/);
  assert.equal(well.requests.length, 0);
  await Promise.all([sick.close(), well.close()]);
});

for (const status of ['failed', 'cancelled']) {
  for (const stream of [true, false]) {
    test(`E7: a responses answer that is ${status} before it said anything: the next channel answers (${stream ? 'stream' : 'whole'})`, async () => {
      const ended = {
        id: 'resp_1',
        object: 'response',
        status,
        model: 'up',
        output: [],
        error: { code: 'server_error', message: 'no' },
      };
      await using sick = await fakeUpstream(({ socket, body }) => {
        if (!/"stream":\s*true/.test(body)) return jsonAnswer(200, ended)({ socket, body } as never);
        const events = openStream(socket);
        events.event('response.created', {
          type: 'response.created',
          response: { ...ended, status: 'in_progress', error: null },
        });
        events.event(`response.${status}`, { type: `response.${status}`, response: ended });
        events.end();
        return undefined;
      });
      await using well = await fakeUpstream(stream ? sayMessages('fine') : jsonAnswer(200, wholeMessage('fine')));
      await using gateway = await testGateway({
        channels: [channel(sick.url, { type: 'responses' }), channel(well.url, { id: 'two', priority: 1 })],
        models: MODELS,
      });
      const response = await gateway.post('/v1/responses', { model: 'm', input: 'hi', stream });
      assert.equal(response.status, 200);
      assert.match(await response.text(), /fine/);
    });
  }
}

test('E7, X13, F4: a slow stream gets its 200 and keep-alives early, and failover is still possible', async () => {
  const asked = Promise.withResolvers<() => void>();
  const sick = await fakeUpstream(({ socket }) => {
    openStream(socket);
    asked.resolve(() => void socket.destroy());
  });
  const well = await fakeUpstream(sayMessages('fine'));
  await using gateway = await testGateway({
    channels: [channel(sick.url), channel(well.url, { id: 'two', priority: 1 })],
    models: MODELS,
    commit_after_ms: 30,
    keep_alive_ms: 30,
  });
  // The headers do not wait for the answer: what would end the wait happens behind them.
  const response = await gateway.post('/v1/messages', ask({ stream: true }));
  assert.equal(response.status, 200);
  let text = '';
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    if (text === '') (await asked.promise)();
    text += chunk;
  }
  assert.match(text, /^: keep-alive\n/);
  assert.match(text, /fine/);
  assert.equal(text.match(/event: message_start/g)?.length, 1);
  await Promise.all([sick.close(), well.close()]);
});

test('an upstream that says when to come again is waited for, but no longer than an exchange may wait', async () => {
  const answered = async (dispatch: object): Promise<readonly [number, number]> => {
    let asked = 0;
    const full = { type: 'error', error: { type: 'rate_limit_error', message: 'later' } };
    await using busy = await fakeUpstream((request) => {
      asked += 1;
      (asked === 1 ? jsonAnswer(429, full, { 'retry-after-ms': '200' }) : jsonAnswer(200, wholeMessage('fine')))(request);
    });
    await using gateway = await testGateway({ channels: [channel(busy.url)], models: MODELS, dispatch });
    return [(await gateway.post('/v1/messages', ask())).status, asked];
  };
  assert.deepEqual(await answered({}), [200, 2]);
  assert.deepEqual(await answered({ max_retry_wait_ms: 100 }), [502, 1]);
});

test('a failure after the early 200 takes its form in the stream', async () => {
  await using sick = await fakeUpstream(({ socket }) => {
    setTimeout(() => void socket.destroy(), 80);
  });
  await using gateway = await testGateway({ channels: [channel(sick.url)], models: MODELS, commit_after_ms: 20 });
  const response = await gateway.post('/v1/messages', ask({ stream: true }));
  assert.equal(response.status, 200);
  const text = await response.text();
  assert.match(text, /^event: error\ndata: \{"type":"error"/);
  assert.equal(gateway.store.settled[0]?.status, 'error');
});

test('F4: silence: first data, then idle; comments count for neither', async () => {
  const silent = await fakeUpstream(({ socket }) => {
    const stream = openStream(socket);
    const timer = setInterval(() => stream.raw(': still here\n\n'), 10);
    socket.on('close', () => clearInterval(timer));
  });
  const stalled = await fakeUpstream(({ socket }) => startMessage(openStream(socket)));
  await using gateway = await testGateway({
    channels: [
      channel(silent.url, { timeouts: { first_data_ms: 60 } }),
      channel(stalled.url, { id: 'two', priority: 1, timeouts: { idle_ms: 60 } }),
    ],
    models: MODELS,
  });
  const text = await (await gateway.post('/v1/messages', ask({ stream: true }))).text();
  assert.match(text, /fell silent/);
  await eventually(() => gateway.store.settled.length === 1, 'settlement');
  assert.equal(gateway.store.settled[0]?.attempts[0]?.errorCode, 'timeout');
  await eventually(() => silent.sockets.size === 0, 'the silent upstream is let go');
  await Promise.all([silent.close(), stalled.close()]);
});

test('F9: Retry-After that is short is waited for when no other channel is left', async () => {
  let calls = 0;
  await using busy = await fakeUpstream((request) => {
    calls += 1;
    const answer = calls === 1 ? jsonAnswer(429, error('rate_limit_error'), { 'retry-after-ms': '40' }) : sayMessages('later');
    return answer(request);
  });
  await using gateway = await testGateway({ channels: [channel(busy.url)], models: MODELS });
  const response = await gateway.post('/v1/messages', ask({ stream: true }));
  assert.match(await response.text(), /later/);
  assert.equal(calls, 2);
});

test('each Channel’s own Retry-After is waited for, also when another one invites earlier', async (t) => {
  const hasty = await fakeUpstream(jsonAnswer(503, error('overloaded_error'), { 'retry-after-ms': '20' }));
  const asked: number[] = [];
  const patient = await fakeUpstream((request) => {
    asked.push(performance.now());
    const refusal = jsonAnswer(503, error('overloaded_error'), { 'retry-after-ms': '600' });
    return (asked.length === 1 ? refusal : sayMessages('later'))(request);
  });
  t.after(() => Promise.all([hasty.close(), patient.close()]));
  await using gateway = await testGateway({
    channels: [channel(hasty.url), channel(patient.url, { id: 'two', priority: 1 })],
    models: MODELS,
    dispatch: { max_attempts: 32 },
    health: { failures: 1000 },
  });
  assert.match(await (await gateway.post('/v1/messages', ask({ stream: true }))).text(), /later/);
  const [first = 0, second = 0] = asked;
  assert.equal(asked.length, 2);
  assert.ok(second - first >= 595, `asked again after ${second - first} ms`);
  assert.ok(hasty.requests.length > 1, 'the other one was asked meanwhile');
});

test('X11, F16: a client that leaves during the wait ends the retries', async () => {
  await using busy = await fakeUpstream(jsonAnswer(503, error('overloaded_error'), { 'retry-after': '2' }));
  await using gateway = await testGateway({ channels: [channel(busy.url)], models: MODELS });
  const abort = new AbortController();
  const asked = gateway.post('/v1/messages', ask({ stream: true }), { signal: abort.signal });
  await eventually(() => busy.requests.length === 1, 'the first attempt');
  await new Promise((resolve) => setTimeout(resolve, 30));
  abort.abort();
  await assert.rejects(asked);
  await eventually(() => gateway.store.settled.length === 1, 'settlement');
  assert.equal(gateway.store.settled[0]?.clientGone, true);
  assert.equal(busy.requests.length, 1);
});

test('F42: a refusal that quotes our key shows it to nobody, whatever it looks like', async () => {
  const key = 'Tr0ub4dor&3';
  const said = { type: key, message: `no such user: ${key}`, param: key, code: key };
  await using upstream = await fakeUpstream(jsonAnswer(400, { error: said }, { 'x-key': key, 'x-request-id': `for ${key}` }));
  const TYPES = ['messages', 'chat_completion', 'responses', 'gemini'];
  const channels = TYPES.map((type) => channel(upstream.url, { id: type, type, api_key: key, models: [type] }));
  const models = Object.fromEntries(TYPES.map((type) => [type, MODELS.m]));
  await using gateway = await testGateway({ channels, models });
  for (const model of TYPES) {
    const response = await gateway.post('/v1/messages', ask({ model }));
    const text = await response.text();
    assert.match(text, /no such user: \[redacted\]/);
    assert.ok(!JSON.stringify([text, ...response.headers, gateway.store.settled, gateway.logLines]).includes(key), model);
  }
});

test('F42: nor does an error inside a 200 show it: whole, as the first event of a stream, and behind the first words', async () => {
  const key = 'Tr0ub4dor&3';
  const error = { type: 'invalid_request_error', code: key, message: `no such user: ${key}` };
  const event = (name: string, data: object): string => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
  const data = (json: object): string => `data: ${JSON.stringify(json)}\n\n`;
  const message = {
    id: 'm',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [],
    usage: { input_tokens: 1, output_tokens: 1 },
  };
  const response = { id: 'r', object: 'response', created_at: 1, model: 'm', output: [], error: null };
  const ANSWERS: Readonly<Record<string, { readonly whole: object; readonly words: string; readonly event: string }>> = {
    messages: {
      whole: { type: 'error', error },
      words:
        event('message_start', { type: 'message_start', message }) +
        event('content_block_start', { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }) +
        event('content_block_delta', { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hi' } }),
      event: event('error', { type: 'error', error }),
    },
    chat_completion: {
      whole: { error },
      words: data({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: 'hi' } }] }),
      event: data({ error }),
    },
    responses: {
      whole: { ...response, status: 'failed', error },
      words: event('response.created', { type: 'response.created', response: { ...response, status: 'in_progress' } }),
      event: event('response.failed', { type: 'response.failed', response: { ...response, status: 'failed', error } }),
    },
    gemini: {
      whole: { error: { code: 400, message: error.message, status: key } },
      words: data({ candidates: [{ content: { role: 'model', parts: [{ text: 'hi' }] } }] }),
      event: data({ error: { code: 400, message: error.message, status: key } }),
    },
  };
  await using upstream = await fakeUpstream(jsonAnswer(500, {}));
  const types = Object.keys(ANSWERS);
  const channels = types.map((type) => channel(upstream.url, { id: type, type, api_key: key, models: [type] }));
  const models = Object.fromEntries(types.map((type) => [type, MODELS.m]));
  await using gateway = await testGateway({ channels, models });
  const sse = { 'content-type': 'text/event-stream' };
  for (const [model, { whole, words, event }] of Object.entries(ANSWERS)) {
    for (const [stream, answer] of [
      [false, jsonAnswer(200, whole)],
      [true, rawAnswer(200, sse, event)],
      [true, rawAnswer(200, sse, words + event)],
    ] as const) {
      for (const [path, asked] of [
        ['/v1/messages', ask({ model, stream })],
        ['/v1/chat/completions', ask({ model, stream })],
        ['/v1/responses', { model, stream, input: 'hi' }],
      ] as const) {
        upstream.answer = answer;
        const said = await gateway.post(path, asked);
        const rows = gateway.store.settled.map(({ errorText, attempts }) => [errorText, attempts]);
        const shown = [await said.text(), ...said.headers, ...gateway.logLines, inspect(rows, { depth: 5 })].join('\n');
        assert.match(shown, /no such user: \[redacted\]/, `${model} ${path}`);
        assert.ok(!shown.includes(key), `${model} ${path} ${shown.slice(0, 2000)}`);
      }
    }
  }
});

test('F42: nor is a credential shown that stands in a header of the operator; what another header holds is a word like any', async () => {
  const headers = { Authorization: 'Bearer Tr0ub4dor&3', 'x-proxy-token': 'correct-horse', 'x-tenant': 'battery-staple' };
  const message = 'no such user: Tr0ub4dor&3 correct-horse battery-staple';
  await using upstream = await fakeUpstream(jsonAnswer(400, { error: { message } }));
  await using gateway = await testGateway({ channels: [channel(upstream.url, { options: { headers } })], models: MODELS });
  const text = await (await gateway.post('/v1/messages', ask())).text();
  assert.match(text, /no such user: \[redacted\] \[redacted\] battery-staple/);
  assert.doesNotMatch(JSON.stringify([gateway.store.settled, gateway.logLines]), /Tr0ub4dor|correct-horse/);
});

test('F42: nor what a cloud lent to sign a request with: in a refusal, and in an error inside a 200', async () => {
  const token = 'FwoGZXIvYXdzEBk+/=aDC0r7gX';
  const said = {
    type: 'error',
    error: { type: 'invalid_request_error', message: `{"x-amz-security-token":"${token}"} is too long` },
  };
  const credentials = { static: { access_key_id: 'AKIA', secret_access_key: 'wJalrXUtnFEMI', session_token: token } };
  for (const status of [400, 200]) {
    await using upstream = await fakeUpstream(jsonAnswer(status, said));
    const hosted = channel(upstream.url, { platform: 'bedrock', options: { region: 'us-east-1', credentials } });
    await using gateway = await testGateway({ channels: [{ ...hosted, api_key: undefined }], models: MODELS });
    const text = await (await gateway.post('/v1/messages', ask())).text();
    assert.equal(upstream.requests[0]?.headers.get('x-amz-security-token'), token, 'it was sent');
    assert.match(text, /redacted/);
    assert.ok(!JSON.stringify([text, gateway.store.settled, gateway.logLines]).includes(token), `${status}`);
  }
});

test('F42: a key of eight characters is one, a shorter one may be a word', async () => {
  for (const [key, shown] of [
    ['Tr0ub4d&', '[redacted]'],
    ['Tr0ub4&', 'Tr0ub4&'],
  ] as const) {
    await using upstream = await fakeUpstream(jsonAnswer(400, { error: { message: `no such user: ${key}` } }));
    await using gateway = await testGateway({ channels: [channel(upstream.url, { api_key: key })], models: MODELS });
    const said = JSON.parse(await (await gateway.post('/v1/messages', ask())).text());
    assert.equal(said.error.message, `no such user: ${shown}`);
  }
});

test('F10: the same deterministic refusal of all passes as itself, without what identifies the upstream', async () => {
  const refusal = jsonAnswer(
    400,
    error('invalid_request_error', 'max_tokens: too large, see https://vendor.example/docs sk-ant-abcdefghijk'),
  );
  const first = await fakeUpstream(refusal);
  const second = await fakeUpstream(refusal);
  await using gateway = await testGateway({ channels: [channel(first.url), channel(second.url, { id: 'two' })], models: MODELS });
  const response = await gateway.post('/v1/messages', ask());
  assert.equal(response.status, 400);
  const text = await response.text();
  assert.match(text, /max_tokens: too large/);
  assert.match(text, /"code":"upstream_error"/, 'a type is no code, and this one is on no list');
  assert.doesNotMatch(text, /vendor\.example|sk-ant/);
  assert.match(gateway.store.settled[0]?.errorText ?? '', /vendor\.example/);
  await Promise.all([first.close(), second.close()]);
});

test('F10: a refusal names its field to a client of the upstream’s own dialect, where the name is nothing but a path', async () => {
  let param = 'messages[0].content';
  let status = 400;
  await using upstream = await fakeUpstream((request) =>
    jsonAnswer(status, { error: { message: 'Wrong.', type: 'invalid_request_error', param, code: 'invalid_value' } })(request),
  );
  const plain = channel(upstream.url, { type: 'chat_completion' });
  const health = { failures: 1000 };
  await using gateway = await testGateway({ channels: [plain], models: MODELS, health });
  const named = async (path: string): Promise<unknown> => {
    const { error: said } = (await (await gateway.post(path, ask())).json()) as { error: { param?: unknown } };
    return said.param;
  };
  assert.equal(await named('/v1/chat/completions'), 'messages[0].content');
  assert.equal(await named('/v1/messages'), undefined, 'the fields of another dialect are not the client’s');
  for (const unsafe of ['org-abc123', 'see https://vendor.example', 'a'.repeat(300), 'sk_live_51Hxxxxxxxxxxxxxxxxxxxxxxxx', '']) {
    param = unsafe;
    assert.equal(await named('/v1/chat/completions'), null, unsafe);
  }
  param = 'temperature';
  status = 500;
  assert.equal(await named('/v1/chat/completions'), null, 'no word on the request');
});

test('F13: a kept connection that the upstream closed is no failure', async () => {
  let calls = 0;
  await using upstream = await fakeUpstream((request) => {
    calls += 1;
    if (calls === 2) request.socket.destroy();
    else return jsonAnswer(200, wholeMessage('fine'))(request);
  });
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
  for (let round = 0; round < 2; round++) assert.equal((await gateway.post('/v1/messages', ask())).status, 200);
  assert.equal(calls, 3);
});

test('a refusal stays one where its body never ends, also under limits that are shorter than the patience with it', async (t) => {
  const upstream = await fakeUpstream(({ socket }) => {
    socket.write('HTTP/1.1 401 X\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{"error":');
  });
  t.after(() => upstream.close());
  const clock = createFakeClock();
  await using gateway = await testGateway(
    { channels: [channel(upstream.url, { timeouts: { first_data_ms: 1000, idle_ms: 1000 } })], models: MODELS },
    { clock },
  );
  const answer = gateway.post('/v1/messages', ask());
  await eventually(() => upstream.requests.length === 1, 'the request');
  await eventually(() => {
    clock.advance(100);
    return gateway.store.settled.length === 1;
  }, 'the row');
  assert.equal((await answer).status, 502);
  assert.deepEqual(
    gateway.store.settled[0]?.attempts.map(({ upstreamStatus, errorCode }) => [upstreamStatus, errorCode]),
    [[401, 'http_status']],
  );
  assert.equal(upstream.sockets.size, 0);
  await gateway.post('/v1/messages', ask());
  assert.equal(upstream.requests.length, 1, 'the Channel is cooled');
});
