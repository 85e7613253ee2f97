/** `serve --workers N` as real processes: a response is found whichever worker answers, over HTTP and over WebSocket. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Agent, request } from 'undici';
import { WebSocket } from 'ws';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { freePort, type Installation, install, type Serving, waitFor } from '../../support/processes.ts';
import { socketClient } from '../../http/websocket/socket-client.ts';

const WORKERS = 3;
const UPSTREAMS = ['chat_completion', 'responses', 'messages', 'gemini'] as const;
const NEVER_STORED = `resp_mizu_${'0'.repeat(32)}`;

const simulator = await startSimulator({ pace: { cut: 'packet' } });
test.after(() => simulator.close());

/** A new connection each time, so that the workers take turns. */
const unkept = new Agent({ pipelining: 0 });
test.after(() => unkept.close());

interface Answer {
  readonly status: number;
  readonly id: string;
  readonly code: string | undefined;
  readonly param: string | null | undefined;
}

async function post(key: string, body: object): Promise<{ readonly status: number; readonly text: string }> {
  const { statusCode, body: answer } = await request(`${serving.url}/v1/responses`, {
    method: 'POST',
    dispatcher: unkept,
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify(body),
  });
  return { status: statusCode, text: await answer.text() };
}

async function overHttp(key: string, body: object): Promise<Answer> {
  const { status, text } = await post(key, body);
  const said: { id: string; error?: { code: string; param: string | null } } = JSON.parse(text);
  return { status, id: said.id, code: said.error?.code, param: said.error?.param };
}

async function overSocket(key: string, body: object): Promise<Answer> {
  const ws = new WebSocket(`${serving.url.replace('http', 'ws')}/v1/responses`, { headers: { authorization: `Bearer ${key}` } });
  const client = socketClient(ws);
  await new Promise((resolve) => ws.once('open', resolve));
  const last = (await client.turn({ type: 'response.create', ...body })).at(-1);
  ws.close();
  const {
    status = 200,
    response,
    error,
  } = last as {
    status?: number;
    response?: { id: string };
    error?: { code: string; param: string | null };
  };
  return { status, id: response?.id ?? '', code: error?.code, param: error?.param };
}

/** A new conversation on a connection of its own each, until every worker has begun one: an id names the worker that keeps it. */
async function oneOfEach(key: string, body: object): Promise<string[]> {
  const keptBy = new Map<string, string>();
  for (let tries = 0; keptBy.size < WORKERS && tries < 10 * WORKERS; tries++) {
    const { id } = await overHttp(key, body);
    keptBy.set(id.slice(0, 'resp_mizu_0000'.length), id);
  }
  assert.equal(keptBy.size, WORKERS, 'connections go to all workers');
  return [...keptBy.values()];
}

let port: number;
let place: Installation;
let serving: Serving;

async function listening(count: number): Promise<void> {
  await waitFor(
    () => (serving.text().split('Mizu listens').length > count ? true : undefined),
    () => serving.text(),
  );
}

test.before(async () => {
  port = await freePort();
  place = await install({
    operations: { port },
    channels: UPSTREAMS.map((type) => ({ id: type, type, base_url: simulator.url, api_key: 'k', models: [type] })),
    models: Object.fromEntries(UPSTREAMS.map((type) => [type, { price: { input: '1', output: '2' } }])),
  });
  serving = await place.serve('--workers', String(WORKERS));
  await listening(WORKERS);
});
test.after(() => place[Symbol.asyncDispose]());

test('a conversation goes on whichever worker answers, with tools, over HTTP and WebSocket and every upstream dialect', async () => {
  const stranger = (await place.run('keys', 'create', '--account', 'tests', '--name', 'stranger')).out.trim();
  const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];
  for (const model of UPSTREAMS) {
    for (const [start, first] of (await oneOfEach(place.key, { model, tools, input: 'the beginning' })).entries()) {
      let previous = first;
      for (let turn = 0; turn < 2 * WORKERS; turn++) {
        simulator.enqueue({ reply: { pieces: [{ type: 'text', text: `answer ${turn}.` }] } });
        const call = { type: 'function_call', call_id: `c${turn}`, name: 'look', arguments: `{"turn":${turn}}` };
        const result = { type: 'function_call_output', call_id: `c${turn}`, output: `seen ${turn}.` };
        const ask = (start + turn) % 2 === 0 ? overHttp : overSocket;
        const answer = await ask(place.key, { model, tools, input: [call, result], previous_response_id: previous });
        assert.equal(answer.status, 200, `${model}, turn ${turn}: ${answer.code}`);
        assert.match(answer.id, /^resp_mizu_[0-9a-f]{32}$/);
        previous = answer.id;
      }
      const sent = simulator.requests.at(-1)?.text ?? '';
      const expected = Array.from({ length: 2 * WORKERS }, (_, turn) => [`seen ${turn}.`, `answer ${turn}.`]).flat();
      for (const words of ['the beginning', ...expected.slice(0, -1)])
        assert.equal(sent.split(words).length, 2, `${words}, once, in ${sent}`);
    }
  }
  const [id = ''] = await oneOfEach(place.key, { model: 'messages', input: 'mine' });
  for (const ask of [overHttp, overSocket]) {
    for (let round = 0; round < WORKERS; round++) {
      for (const [key, unknown] of [
        [stranger, id],
        [place.key, NEVER_STORED],
      ] as const) {
        const refused = await ask(key, { model: 'messages', input: 'x', previous_response_id: unknown });
        assert.deepEqual(
          [refused.status, refused.code, refused.param],
          [400, 'previous_response_not_found', 'previous_response_id'],
        );
      }
    }
  }
});

test('an item that is named by its id alone is told to the upstream whichever worker answers', async () => {
  const model = 'messages';
  simulator.enqueue({ reply: { pieces: [{ type: 'text', text: 'The word is heron.' }] } });
  const { text } = await post(place.key, { model, input: 'Which word?' });
  const said: { output: { id: string }[] } = JSON.parse(text);
  const references = said.output.map(({ id }) => ({ type: 'item_reference', id }));
  assert.equal(references.length, 1);
  for (let round = 0; round < 2 * WORKERS; round++) {
    await post(place.key, { model, input: [...references, { role: 'user', content: 'And now?' }] });
    assert.match(simulator.requests.at(-1)?.text ?? '', /The word is heron/, `round ${round}`);
  }
});

test('a worker that dies takes what it kept with it, and nobody waits for it; what others kept is still found', async () => {
  const ids = await oneOfEach(place.key, { model: 'messages', input: 'remember' });
  const report: { workers: { pid: number }[] } = JSON.parse(await (await fetch(`http://127.0.0.1:${port}/channels`)).text());
  const pid = report.workers[0]?.pid ?? assert.fail();
  process.kill(pid, 'SIGKILL');
  await listening(WORKERS + 1);
  for (let round = 0; round < WORKERS; round++) {
    const codes: (string | undefined)[] = [];
    for (const id of ids)
      codes.push((await overHttp(place.key, { model: 'messages', input: 'go on', previous_response_id: id })).code);
    assert.deepEqual(
      codes.filter((code) => code !== undefined),
      ['previous_response_not_found'],
      'one of three was lost',
    );
  }
  assert.equal(await serving.stop(), 0);
});
