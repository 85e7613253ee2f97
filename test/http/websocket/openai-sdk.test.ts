/** The official SDK's WebSocket client, as an outside reader: turns, tool results, errors. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { startSimulator } from '../../../src/http/simulator/simulator.ts';
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
