/**
 * What a client's dialect leaves out of an answer is named in the log, streamed or whole; nothing is left out within one dialect.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endMessage, fakeUpstream, jsonAnswer, openStream, startMessage, wholeMessage } from '../../support/fake-upstream.ts';
import { ask, channel, eventually, MODELS, testGateway } from '../../support/test-gateway.ts';

const thought = { type: 'thinking', thinking: 'hm', signature: 'c2ln' };

test('a citation that came after its text had ended is named, for a responses client of a chat upstream', async (t) => {
  const part = (delta: object, finish: string | null = null) =>
    `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  const cited = { type: 'url_citation', url_citation: { url: 'https://a.test', title: 'a', start_index: 0, end_index: 2 } };
  const call = { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } };
  const body = [part({ content: 'Hi' }), part({ tool_calls: [call] }), part({ annotations: [cited] }), part({}, 'tool_calls')];
  const upstream = await fakeUpstream(({ socket }) => {
    const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n';
    socket.end(`${head}${body.join('')}data: [DONE]\n\n`);
  });
  t.after(() => upstream.close());
  const chat = { ...channel(upstream.url), type: 'chat_completion' };
  await using gateway = await testGateway({ channels: [chat], models: MODELS });
  const answer = await gateway.post('/v1/responses', { model: 'm', input: 'hi', stream: true });
  assert.match(await answer.text(), /response\.completed/);
  await eventually(() => gateway.logLines.some((line) => line.includes('answer_losses')));
  const line = gateway.logLines.find((one) => one.includes('answer_losses')) ?? '';
  const lost = ['citation of an ended text', 'completed: tool use'];
  assert.deepEqual(JSON.parse(line).answer_losses, lost);
  const [row] = gateway.store.settled;
  assert.deepEqual(row?.answerLosses, lost, 'the row of the request log names them');
  assert.equal(row?.losses, undefined, 'nothing of the request was lost');
});

test('losses of an answer are named, as those of a request are', async (t) => {
  const upstream = await fakeUpstream((request) => {
    if (!request.body.includes('"stream":true')) {
      const said = { ...wholeMessage('yes'), content: [thought, { type: 'text', text: 'yes' }] };
      return jsonAnswer(200, said)(request);
    }
    const stream = openStream(request.socket);
    startMessage(stream);
    stream.event('content_block_delta', { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'y' } });
    stream.event('content_block_stop', { type: 'content_block_stop', index: 0 });
    stream.event('content_block_start', {
      type: 'content_block_start',
      index: 1,
      content_block: { type: 'redacted_thinking', data: 'eA==' },
    });
    stream.event('content_block_stop', { type: 'content_block_stop', index: 1 });
    endMessage({ ...stream, event: (name, data) => (name === 'content_block_stop' ? undefined : stream.event(name, data)) });
  });
  t.after(() => upstream.close());
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
  const lossesOf = async (path: string, body: object): Promise<string[][]> => {
    const before = gateway.logLines.length;
    assert.equal((await (await gateway.post(path, body)).text()).includes('error'), false);
    await eventually(() => gateway.logLines.slice(before).some((line) => line.includes('"exchange"')));
    const lines = gateway.logLines.slice(before).map((line) => JSON.parse(line));
    return lines.flatMap(({ answer_losses: losses }) => (losses === undefined ? [] : [losses]));
  };
  const asked = { model: 'm', prompt: 'hi' };
  const [whole] = await lossesOf('/v1/completions', asked);
  assert.ok(whole?.includes('reasoning: summary') && whole.includes('reasoning: opaque'), String(whole));
  const [streamed] = await lossesOf('/v1/completions', { ...asked, stream: true });
  assert.ok(streamed?.includes('reasoning: redacted'), String(streamed));
  assert.deepEqual(await lossesOf('/v1/messages', ask()), []);
  assert.deepEqual(await lossesOf('/v1/messages', ask({ stream: true })), []);
});

test('a turn that pauses with nothing but its own vendor’s blocks is no empty success in another dialect', async (t) => {
  const body = {
    ...wholeMessage(''),
    content: [{ type: 'server_tool_use', id: 's', name: 'web_search', input: {} }],
    stop_reason: 'pause_turn',
  };
  const upstream = await fakeUpstream(jsonAnswer(200, body));
  t.after(() => upstream.close());
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
  const chat = await gateway.post('/v1/chat/completions', { model: 'm', messages: [{ role: 'user', content: 'hi' }] });
  assert.equal(chat.status, 502);
  assert.match(await chat.text(), /response_not_representable/);
  assert.match(await (await gateway.post('/v1/messages', ask())).text(), /"stop_reason":"pause_turn"/, 'its own client goes on');
});
