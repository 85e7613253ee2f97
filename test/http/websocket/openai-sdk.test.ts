/** The official SDK's WebSocket client, as an outside reader: turns, tool results, errors. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { KEY, testGateway } from '../../support/test-gateway.ts';

const simulator = await startSimulator({ pace: { cut: 'packet' } });
test.after(() => simulator.close());

for (const type of ['chat_completion', 'responses', 'messages', 'gemini'] as const) {
  test(`ResponsesWS over ${type}: a tool turn and its continuation`, async () => {
    await using gateway = await testGateway({
      channels: [{ id: 'one', type, base_url: simulator.url, api_key: 'k', models: ['m'] }],
      models: { m: { price: { input: '1', output: '2' } } },
    });
    simulator.enqueue(
      { reply: { pieces: [{ type: 'tool', name: 'look', arguments: '{}' }] } },
      { reply: { pieces: [{ type: 'text', text: 'It is blue.' }] } },
    );
    const socket = new ResponsesWS(new OpenAI({ apiKey: KEY, baseURL: `${gateway.url}/v1` }));
    const tools: OpenAI.Responses.FunctionTool[] = [
      { type: 'function', name: 'look', strict: false, parameters: { type: 'object', properties: {} } },
    ];
    const said = await new Promise<string>((resolve, reject) => {
      socket.on('error', reject);
      socket.on('response.completed', ({ response }) => {
        const call = response.output.find((item) => item.type === 'function_call');
        if (call === undefined) {
          resolve(
            response.output
              .flatMap((item) => (item.type === 'message' ? item.content : []))
              .map((part) => ('text' in part ? part.text : ''))
              .join(''),
          );
          return;
        }
        socket.send({
          type: 'response.create',
          model: 'm',
          tools,
          store: false,
          previous_response_id: response.id,
          input: [{ type: 'function_call_output', call_id: call.call_id, output: 'blue' }],
        });
      });
      socket.send({ type: 'response.create', model: 'm', tools, store: false, input: 'what colour is the sky?' });
    });
    assert.equal(said, 'It is blue.');
    const failed = await new Promise<Error>((resolve) => {
      socket.on('error', resolve);
      socket.send({ type: 'response.create', model: 'm', previous_response_id: 'resp_nothing', input: 'x' });
    });
    assert.match(failed.message, /not found/);
    socket.close();
  });
}

test('ResponsesWS that reconnects: a client that meets the turn limit goes on over a new connection', async () => {
  await using gateway = await testGateway({
    channels: [{ id: 'one', type: 'messages', base_url: simulator.url, api_key: 'k', models: ['m'] }],
    models: { m: { price: { input: '1', output: '2' } } },
    websocket: { turns: 1 },
  });
  simulator.enqueue({ times: 2, reply: { pieces: [{ type: 'text', text: 'Yes.' }] } });
  const client = new OpenAI({ apiKey: KEY, baseURL: `${gateway.url}/v1` });
  const socket = new ResponsesWS(client, { reconnect: { initialDelay: 1, onReconnecting: () => undefined } });
  const ask = (): void => socket.send({ type: 'response.create', model: 'm', input: 'Are you there?' });
  let answered = 0;
  let refusals = 0;
  await new Promise<void>((resolve, reject) => {
    socket.on('error', (error) => {
      if (/connection limit reached/.test(error.message)) refusals += 1;
      else reject(error);
    });
    // Its last word; a close that it takes for an interruption is followed by a new connection.
    socket.on('close', (code) => reject(new Error(`closed with ${code}`)));
    socket.on('reconnected', ask);
    socket.on('response.completed', () => {
      answered += 1;
      if (answered === 2) resolve();
      else ask();
    });
    ask();
  });
  socket.close();
  assert.equal(refusals, 1);
});
