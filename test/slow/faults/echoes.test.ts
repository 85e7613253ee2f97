/**
 * What one key can do to another's stream with answers that its requests make large: the longest turn of the event loop, in
 * processor time, measured again before it fails (see stalls.test.ts).
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { WebSocket } from 'ws';
import { figure } from '../../support/figures.ts';
import { type Rig, withRig } from '../../support/memory-law.ts';
import { KEY } from '../../support/test-gateway.ts';
import { type EchoManners, startEchoUpstream } from './support/echo-upstream.ts';

const TRIES = 6;
const STALL_MS = 50;
const MIB = 1024 * 1024;

const list = <T>(count: number, of: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => of(at));
const TOOLS = list(20_000, (at) => ({
  type: 'function',
  name: `t${at}`,
  parameters: { type: 'object', properties: { p: { type: 'string' } } },
}));
const LONG = 'word '.repeat(6 * MIB);

interface Asked {
  readonly path?: string;
  readonly body: object;
  readonly manners?: EchoManners;
  readonly areTurns?: boolean;
  /** The upstream is asked over a WebSocket, too. */
  readonly isLinked?: boolean;
  /** What steers the first turn. */
  readonly steers?: readonly string[];
  /** A model of {@link withRig}, whose upstream speaks another protocol. Default: the echoing one. */
  readonly model?: string;
}

const ASKED: Readonly<Record<string, Asked>> = {
  'a whole answer with its instructions of 30 MB': { body: { instructions: LONG, input: 'x' } },
  'a whole answer with its instructions of 10 MB, not ASCII alone': {
    body: { instructions: 'é wörd\n'.repeat(1.25 * MIB), input: 'x' },
  },
  'a stream with its instructions of 30 MB, the end of which has to be filled in': {
    body: { instructions: LONG, input: 'x', stream: true },
    manners: { isSloppy: true },
  },
  'a stream with its instructions of 30 MB that breaks off': {
    body: { instructions: LONG, input: 'x', stream: true },
    manners: { breaksOff: true },
  },
  'a stream with its 20,000 tools, the end of which has to be filled in': {
    body: { tools: TOOLS, input: 'x', stream: true },
    manners: { isSloppy: true },
  },
  'a stream with its 20,000 tools that breaks off': {
    body: { tools: TOOLS, input: 'x', stream: true },
    manners: { breaksOff: true },
  },
  'a stream over messages with its instructions of 30 MB': {
    body: { instructions: LONG, input: 'x', stream: true },
    model: 'free',
  },
  'a stream over messages with its instructions of 15 MB of quotes': {
    body: { instructions: '"'.repeat(15 * MIB), input: 'x', stream: true },
    model: 'free',
  },
  'a stream with its instructions of 15 MB of quotes, the end of which has to be filled in': {
    body: { instructions: '"'.repeat(15 * MIB), input: 'x', stream: true },
    manners: { isSloppy: true },
  },
  'a stream over messages with its 20,000 tools': { body: { tools: TOOLS, input: 'x', stream: true }, model: 'free' },
  'a warm-up with its instructions of 30 MB, and a turn': {
    body: { instructions: LONG, input: 'x', generate: false },
    areTurns: true,
  },
  'two turns of a WebSocket with instructions of 30 MB': { body: { instructions: LONG, input: 'x' }, areTurns: true },
  'two turns of a WebSocket with instructions of 30 MB of emoji': {
    body: { instructions: '😀'.repeat(7.5 * MIB), input: 'x' },
    areTurns: true,
  },
  'two turns over an upstream WebSocket with instructions of 30 MB': {
    body: { instructions: LONG, input: 'x' },
    areTurns: true,
    isLinked: true,
  },
  'two turns over an upstream WebSocket with instructions of 30 MB of emoji': {
    body: { instructions: '😀'.repeat(7.5 * MIB), input: 'x' },
    areTurns: true,
    isLinked: true,
  },
  'two turns over an upstream WebSocket with instructions of 15 MB of quotes': {
    body: { instructions: '"'.repeat(15 * MIB), input: 'x' },
    areTurns: true,
    isLinked: true,
  },
  'two turns over an upstream WebSocket with 20,000 tools': {
    body: { tools: TOOLS, input: 'x' },
    areTurns: true,
    isLinked: true,
  },
  'two turns over an upstream WebSocket with 20,000 tools, the end of which has to be filled in': {
    body: { tools: TOOLS, input: 'x' },
    manners: { isSloppy: true },
    areTurns: true,
    isLinked: true,
  },
  'three steers of 10 MB each, and a turn': {
    body: { input: 'x' },
    steers: list(3, () => LONG.slice(0, 10 * MIB)),
    manners: { steers: 3 },
    areTurns: true,
    isLinked: true,
  },
  'three steers of 5 MB of quotes each, and a turn': {
    body: { input: 'x' },
    steers: list(3, () => '"'.repeat(5 * MIB)),
    manners: { steers: 3 },
    areTurns: true,
    isLinked: true,
  },
  'a whole answer with its 20,000 tools': { body: { tools: TOOLS, input: 'x' } },
  'a stream with its instructions of 30 MB, three times': { body: { instructions: LONG, input: 'x', stream: true } },
  'a stream with its instructions of 10 MB, not ASCII alone, three times': {
    body: { instructions: 'é wörd\n'.repeat(1.25 * MIB), input: 'x', stream: true },
  },
  'a stream with its instructions of 30 MB of emoji, three times': {
    body: { instructions: '😀'.repeat(7.5 * MIB), input: 'x', stream: true },
  },
  'a whole answer with its instructions of 30 MB of emoji': { body: { instructions: '😀'.repeat(7.5 * MIB), input: 'x' } },
  'a stream with its 20,000 tools, three times': { body: { tools: TOOLS, input: 'x', stream: true } },
  'a whole answer to a system of 30 MB': {
    path: '/v1/messages',
    body: { max_tokens: 9, system: LONG, messages: [{ role: 'user', content: 'x' }] },
  },
  'an input of 30 MB of emoji that is stored': { body: { input: '😀'.repeat(7.5 * MIB) } },
  'two turns of a WebSocket, the first with an input of 30 MB of emoji': {
    body: { input: '😀'.repeat(7.5 * MIB) },
    areTurns: true,
  },
  'a prompt_cache_key of 30 MB': { body: { input: 'x', prompt_cache_key: LONG } },
  'metadata and a user of 15 MB each': {
    body: { input: 'x', user: '😀'.repeat(3.5 * MIB), metadata: { a: LONG.slice(0, 15 * MIB) } },
  },
  'ten pictures of five megabytes each': { path: '/v1/images/generations', body: { prompt: 'x', n: 10 }, model: 'picture' },
  'embeddings of 2,048 inputs': {
    path: '/v1/embeddings',
    body: { input: list(2_048, () => 'x'), encoding_format: 'float' },
    model: 'embedding',
  },
  'embeddings of 2,048 inputs, in base64': {
    path: '/v1/embeddings',
    body: { input: list(2_048, () => 'x'), encoding_format: 'base64' },
    model: 'embedding',
  },
  'an answer with the probabilities of 20,000 tokens': {
    path: '/v1/chat/completions',
    body: { messages: [{ role: 'user', content: 'x' }], logprobs: true, top_logprobs: 20 },
    model: 'scored',
  },
  'an answer with the probabilities of 20,000 tokens, over responses': {
    body: { input: 'x', include: ['message.output_text.logprobs'], top_logprobs: 20 },
    model: 'scored',
  },
  'a compaction of 30 MB': { path: '/v1/responses/compact', body: { input: [{ role: 'user', content: LONG }] } },
  '80,000 references to items': { body: { input: list(80_000, (at) => ({ type: 'item_reference', id: `msg_${at}` })) } },
};

/** How it ended, and how a turn ended that continued it and left all else out. */
async function turns(rig: Rig, text: string, steers: readonly string[]): Promise<readonly string[]> {
  const ws = new WebSocket(`${rig.url.replace('http', 'ws')}/v1/responses`, { headers: { authorization: `Bearer ${KEY}` } });
  await once(ws, 'open');
  const waiting = [...steers];
  const endings: Ended[] = [];
  let told = Promise.withResolvers<void>();
  ws.on('message', (data) => {
    const event = JSON.parse(String(data)) as Ended;
    if (event.type === 'response.created') {
      const { id } = event.response ?? {};
      for (const input of waiting.splice(0)) ws.send(JSON.stringify({ type: 'response.steer', previous_response_id: id, input }));
    } else if (/^(?:response\.(?:completed|failed|incomplete|steer\.failed)|error)$/.test(event.type)) {
      endings.push(event);
      told.resolve();
    }
  });
  ws.on('close', (code) => {
    endings.push({ type: `closed ${code}` });
    told.resolve();
  });
  const ending = async (): Promise<Ended> => {
    await told.promise;
    const ended = endings.shift() ?? { type: 'none' };
    // Nothing follows the end of the connection.
    if (endings.length === 0 && !ended.type.startsWith('closed')) told = Promise.withResolvers();
    return ended;
  };
  ws.send(text);
  let first = await ending();
  // A response that was steered is followed by one that answers the steers.
  if (steers.length > 0) first = await ending();
  const { id, instructions } = first.response ?? {};
  ws.send(JSON.stringify({ type: 'response.create', model: 'echo', previous_response_id: id, input: 'and then?' }));
  const second = await ending();
  ws.terminate();
  assert.equal(
    second.response?.instructions?.length,
    instructions?.length,
    `they are inherited: ${JSON.stringify(second).slice(0, 300)}`,
  );
  return [first.type, second.type];
}

interface Ended {
  readonly type: string;
  readonly response?: { readonly id: string; readonly instructions?: string };
}

for (const [name, asked] of Object.entries(ASKED)) {
  const { path = '/v1/responses', body, manners, areTurns, isLinked = false, steers = [], model = 'echo' } = asked;
  test(`F47: ${name}: another key's stream is stalled for no longer than ${STALL_MS} ms`, async (t) => {
    const upstream = await startEchoUpstream(manners);
    const price = { price: { input: '0.0001', output: '0.0001' } };
    // Its streams break off as often as it is tried.
    const picture = { kind: 'image', price: { input: '0.0001', output: '0.0001', image_output: '0.0001' } };
    const models = {
      m: price,
      free: price,
      lowered: price,
      echo: price,
      picture,
      scored: price,
      embedding: { kind: 'embedding', ...price },
    };
    const file = { models, health: { failures: 1_000 } };
    const echo = { id: 'echo', type: 'responses', base_url: `${upstream.url}/v1`, api_key: 'k', models: ['echo'] };
    const linked = isLinked ? { options: { websocket: true } } : {};
    const text = JSON.stringify({ ...(areTurns === true ? { type: 'response.create' } : {}), model, ...body });
    let least = Number.POSITIVE_INFINITY;
    const run = async (rig: Rig): Promise<void> => {
      for (let tried = 0; tried <= TRIES && least > STALL_MS; tried++) {
        const longest = await rig.longestTurn(async () => {
          if (areTurns === true) {
            assert.deepEqual(await turns(rig, text, steers), ['response.completed', 'response.completed']);
            return;
          }
          const answer = await rig.post(text, KEY, path);
          const said = await answer.text();
          assert.equal(answer.status, 200, said.slice(0, 300));
          const ending = manners?.breaksOff === true ? 'failed' : 'completed';
          if ('stream' in body) assert.ok(said.includes(`event: response.${ending}\n`), `it did not end as ${ending}`);
        });
        // The first time much is compiled.
        if (tried > 0) least = Math.min(least, longest);
      }
    };
    const drawing = { ...echo, id: 'picture', type: 'openai_image', models: ['picture'] };
    const embedding = { ...echo, id: 'embedding', type: 'chat_completion', models: ['embedding', 'scored'] };
    await withRig(file, run, () => [{ ...echo, ...linked }, drawing, embedding]);
    upstream.close();
    figure(t, `${name}: the longest turn of the event loop`, `${Math.round(least)} ms`);
    assert.ok(least <= STALL_MS, `a turn took ${least.toFixed(1)} ms`);
  });
}
