/**
 * What one key can do to another's stream: the longest turn of the event loop while a client attacks, in processor time, so that
 * what else runs on the machine counts for nothing. Collections do, so each is measured again before it fails.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { WebSocket } from 'ws';
import { figure } from '../../support/figures.ts';
import { SCHEMAS } from '../../support/linear/schema-shapes.ts';
import { type Rig, withRig } from '../../support/memory-law.ts';
import { KEY } from '../../support/test-gateway.ts';
import { flood, leastTurn, request } from './support/flood.ts';

const TRIES = 4;
const CLIENTS = 1_000;
/** What the gateway may take in one turn beside what Node takes for as many connections that end in it. */
const LEAVING_MS = 10;
/** That many connections are opened at once: a thousand might wait so long on a busy machine that their headers come too late. */
const OPENED_AT_ONCE = 100;

test('F16: a thousand clients that leave in mid-stream at once stall nobody', async (t) => {
  await withRig({ limits: { key_exchanges: 2 * CLIENTS } }, async (rig) => {
    const body = JSON.stringify({ model: 'm', stream: true, max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] });
    const head = `POST /v1/messages HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${KEY}\r\ncontent-type: application/json\r\n`;
    const open = async (port: number): Promise<Socket> => {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.write(`${head}content-length: ${body.length}\r\n\r\n${body}`);
      await once(socket, 'data');
      return socket;
    };
    const leave = async (port: number, left: () => Promise<number>): Promise<number> => {
      const sockets: Socket[] = [];
      while (sockets.length < CLIENTS)
        sockets.push(...(await Promise.all(Array.from({ length: OPENED_AT_ONCE }, () => open(port)))));
      return rig.longestTurn(async () => {
        for (const socket of sockets) socket.destroy();
        while ((await left()) > 0) await new Promise((resolve) => setTimeout(resolve, 50));
        await new Promise((resolve) => setTimeout(resolve, 200));
      });
    };
    const [gateway, plain] = [Number(new URL(rig.url).port), await rig.plain()];
    let [least, floor] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    let tries = 0;
    do {
      const pieces = [{ type: 'text' as const, text: 'one two three four five six seven eight nine ten '.repeat(20) }];
      rig.simulator.enqueue({ reply: { pieces }, pace: { ms: 1_000 }, times: CLIENTS });
      least = Math.min(least, await leave(gateway, () => rig.inFlight()));
      floor = Math.min(floor, await leave(plain, () => rig.plainOpen()));
      tries += 1;
    } while (least > floor + LEAVING_MS && tries < TRIES);
    const told = `${Math.round(least)} ms, ${Math.round(floor)} ms of a server of Node alone`;
    figure(t, 'a thousand clients that leave at once: the longest turn of the event loop', told);
    assert.ok(least <= floor + LEAVING_MS, `a turn took ${least.toFixed(1)} ms, and ${floor.toFixed(1)} ms with Node alone`);
  });
});

const messages = [{ role: 'user', content: 'hi' }];
const ask = (members: object): string => JSON.stringify({ model: 'm', max_tokens: 9, messages, ...members });
const property = (name: string): object => ({ properties: { [name]: { type: 'string' } } });
const list = <T>(count: number, of: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => of(at));
const picture = (url: string): object => ({ messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] });
const referring = (size: number): object => ({
  type: 'object',
  ...SCHEMAS['references to each level of a deep schema']?.(size),
});
/** `args` as they are spelt within a string. */
const asCall = (args: string, model = 'm'): string =>
  `{"model":"${model}","messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"c","type":"function",` +
  `"function":{"name":"f","arguments":"${args}"}}]},{"role":"tool","tool_call_id":"c","content":"y"}]}`;
const tool = (input_schema: object): object => ({ tools: [{ name: 't', input_schema }] });

/** What a key with a cent can send in one request, at the limits that are there by default. */
const ATTACKS: Readonly<Record<string, (rig: Rig) => Promise<string | Buffer> | string | Buffer>> = {
  'a tool with 8,000 branches': () => ask(tool({ type: 'object', allOf: list(8_000, (at) => property(`p${at}`)) })),
  'a tool with 8,000 branches for gemini': () =>
    ask({ model: 'lowered', ...tool({ type: 'object', allOf: list(8_000, (at) => property(`p${at}`)) }) }),
  'a list of 200,000 empty objects in an unknown member, compressed': () => gzipSync(ask({ x: list(200_000, () => ({})) })),
  '2,000 tools': () =>
    ask({ tools: list(2_000, (at) => ({ name: `t${at}`, input_schema: { type: 'object', properties: {} } })) }),
  '4,000 messages': () =>
    ask({ messages: list(4_001, (at) => ({ role: at % 2 === 0 ? 'user' : 'assistant', content: `word ${at}` })) }),
  'a megabyte of one word': () => ask({ messages: [{ role: 'user', content: 'x'.repeat(1_000_000) }] }),
  'three envelopes that inflate to 60 MiB': async (rig) => {
    const signature = await rig.seal('a'.repeat(20 * 1024 * 1024));
    const turn = [
      { role: 'assistant', content: [{ type: 'thinking', thinking: 't', signature }] },
      { role: 'user', content: 'y' },
    ];
    return ask({ messages: [...messages, ...turn, ...turn, ...turn] });
  },
  'a picture of 8 MB in the alphabet of URLs, wrapped, compressed': () =>
    gzipSync(ask(picture(`data:image/png;base64,${'-_A '.repeat(2_000_000)}`))),
  'a picture with a type of 8 MB, compressed': () => gzipSync(ask(picture(`data:image/png${';'.repeat(8_000_000)},x`))),
  'a schema of 0.6 MB for gemini, each level referred to': () => ask({ model: 'lowered', ...tool(referring(20_000)) }),
  'arguments of ten million values, compressed': () => gzipSync(asCall(`{\\"x\\":[${'{},'.repeat(10_000_000)}{}]}`)),
  'arguments of ten million values for gemini, compressed': () =>
    gzipSync(asCall(`{\\"x\\":[${'{},'.repeat(10_000_000)}{}]}`, 'lowered')),
  'a call, and a result, of seven million quotes each for gemini': () =>
    ask({
      model: 'lowered',
      messages: [
        ...messages,
        { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'f', input: { a: '"'.repeat(7_000_000) } }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: '"'.repeat(7_000_000) }] },
      ],
    }),
  'fifteen million backslashes': () => ask({ messages: [{ role: 'user', content: '\\'.repeat(15_000_000) }] }),
  'arguments of five million quotes, compressed': () => gzipSync(asCall(`{\\"x\\":\\"${'\\\\\\"'.repeat(5_000_000)}\\"}`)),
  '60,000 messages': () =>
    ask({ messages: list(60_001, (at) => ({ role: at % 2 === 0 ? 'user' : 'assistant', content: `word ${at}` })) }),
  '60,000 messages for gemini': () =>
    ask({
      model: 'lowered',
      messages: list(60_001, (at) => ({ role: at % 2 === 0 ? 'user' : 'assistant', content: `word ${at}` })),
    }),
  '20,000 tools for gemini': () =>
    ask({
      model: 'lowered',
      tools: list(20_000, (at) => ({ name: `t${at}`, input_schema: { type: 'object', ...property('p') } })),
    }),
  'a number of 30 MB, compressed': () => gzipSync(ask({ x: 0 }).replace('"x":0', `"x":${'1'.repeat(30_000_000)}`)),
  '30 MB of white space, compressed': () => gzipSync(ask({}).replace('{', `{${' '.repeat(30_000_000)}`)),
  'five million halves of pairs for gemini, compressed': () =>
    gzipSync(`{"model":"lowered","max_tokens":9,"messages":[{"role":"user","content":"${'\\ud800'.repeat(5_000_000)}"}]}`),
  'a text of 16 MB, compressed': () => gzipSync(ask({ messages: [{ role: 'user', content: 'word '.repeat(3_200_000) }] })),
};
/** What is not said in messages. */
const isChat = (name: string): boolean => /^(a picture|arguments)/.test(name);
const STALL_MS = 50;
/** So that the balance lasts for megabytes. */
const CHEAP = { price: { input: '0.0001', output: '0.0001' } };

for (const [name, bodyOf] of Object.entries(ATTACKS)) {
  test(`F47: ${name}: another key's stream is stalled for no longer than ${STALL_MS} ms`, async (t) => {
    await withRig({ models: { m: CHEAP, free: CHEAP, lowered: CHEAP } }, async (rig) => {
      const body = await bodyOf(rig);
      const least = await leastTurn(rig, STALL_MS, async () => {
        const answer = await fetch(rig.url + (isChat(name) ? '/v1/chat/completions' : '/v1/messages'), {
          method: 'POST',
          headers: {
            authorization: `Bearer ${KEY}`,
            'content-type': 'application/json',
            ...(typeof body === 'string' ? {} : { 'content-encoding': 'gzip' }),
          },
          body: typeof body === 'string' ? body : new Uint8Array(body),
        });
        await answer.text();
        assert.ok([200, 400, 413].includes(answer.status), `${answer.status}`);
      });
      figure(t, `${name}: the longest turn of the event loop`, `${Math.round(least)} ms`);
      assert.ok(least <= STALL_MS, `a turn took ${least.toFixed(1)} ms`);
    });
  });
}

const branches = (count: number): string =>
  ask({ model: 'lowered', ...tool({ type: 'object', allOf: list(count, (at) => property(`p${at}`)) }) });

/** A socket of the attacking key, whose messages are answered one after another. */
async function talk(rig: Rig, messages: readonly (readonly [data: string, fin: boolean])[]): Promise<string> {
  const ws = new WebSocket(`${rig.url.replace('http', 'ws')}/v1/responses`, { headers: { authorization: `Bearer ${KEY}` } });
  await once(ws, 'open');
  const ended = new Promise<string>((resolve) => {
    ws.on('message', (data) => {
      if (/"type":"(response\.(completed|failed|incomplete)|error)"/.test(String(data))) resolve(String(data));
    });
    ws.on('close', (code) => resolve(`closed ${code}`));
  });
  for (const [data, fin] of messages) ws.send(data, { fin });
  const end = await ended;
  ws.terminate();
  return end;
}

/** A turn in so many frames, all but the last of one byte. */
function fragments(count: number): [string, boolean][] {
  const text = JSON.stringify({ type: 'response.create', model: 'lowered', input: 'x'.repeat(count) });
  return [...text.slice(0, count - 1).split(''), text.slice(count - 1)].map((data, at) => [data, at === count - 1]);
}

/** Many messages on many sockets at once, each of which is answered. */
async function chatter(rig: Rig, sockets: number, count: number, text: string): Promise<void> {
  const open = await Promise.all(
    Array.from({ length: sockets }, async () => {
      const ws = new WebSocket(`${rig.url.replace('http', 'ws')}/v1/responses`, { headers: { authorization: `Bearer ${KEY}` } });
      await once(ws, 'open');
      return ws;
    }),
  );
  const answered = open.map(
    (ws) =>
      new Promise<void>((resolve) => {
        let seen = 0;
        ws.on('message', () => {
          if (++seen === count) resolve();
        });
      }),
  );
  for (const ws of open) for (let sent = 0; sent < count; sent++) ws.send(text);
  await Promise.all(answered);
  for (const ws of open) ws.terminate();
}

const input = list(30_000, (at) => ({ role: at % 2 === 0 ? 'user' : 'assistant', content: `word ${at}` }));

/** What takes several requests, another transport or another endpoint. */
const SEQUENCES: Readonly<Record<string, (rig: Rig) => Promise<void>>> = {
  'twelve bodies of 20,000 messages at once': async (rig) => {
    const body = ask({
      model: 'lowered',
      messages: list(20_001, (at) => messages[at % 2] ?? { role: 'assistant', content: 'x' }),
    });
    const answers = await Promise.all(Array.from({ length: 12 }, () => rig.post(body)));
    for (const answer of answers) {
      await answer.text();
      assert.ok([200, 400, 413].includes(answer.status), `${answer.status}`);
    }
  },
  'a thousand small requests at once': async (rig) => {
    assert.deepEqual(
      [
        ...(await flood(
          rig,
          list(1_000, () => request('POST /v1/messages', ask({}))),
          1,
        )),
      ],
      ['200'],
    );
  },
  'three hundred requests in one packet': async (rig) => {
    assert.deepEqual(
      [
        ...(await flood(
          rig,
          list(1, () => request('POST /v1/messages', ask({})).repeat(300)),
          300,
        )),
      ],
      ['200'],
    );
  },
  'ten thousand questions for the models, a hundred in a packet': async (rig) => {
    assert.deepEqual(
      [
        ...(await flood(
          rig,
          list(100, () => request('GET /v1/models').repeat(100)),
          100,
        )),
      ],
      ['200'],
    );
  },
  'ten thousand requests with a key that nobody has, a hundred in a packet': async (rig) => {
    assert.deepEqual(
      [
        ...(await flood(
          rig,
          list(100, () => request('POST /v1/messages', '', 'x').repeat(100)),
          100,
        )),
      ],
      ['401'],
    );
  },
  'forty bodies of 235 KB at once, each a schema of 5,500 branches': async (rig) => {
    const [status, ...others] = await flood(
      rig,
      list(40, () => request('POST /v1/messages', branches(5_500))),
      1,
    );
    assert.deepEqual([status, others], ['200', []]);
  },
  'four hundred bodies of 30 KB at once, each a schema of 700 branches': async (rig) => {
    const [status, ...others] = await flood(
      rig,
      list(400, () => request('POST /v1/messages', branches(700))),
      1,
    );
    assert.deepEqual([status, others], ['200', []]);
  },
  '180,000 tiny messages on sixty WebSockets': (rig) => chatter(rig, 60, 3_000, '{}'),
  '6,000 turns that are refused on sixty WebSockets': (rig) =>
    chatter(rig, 60, 100, JSON.stringify({ type: 'response.create', model: 'none', input: 'x' })),
  'a message of 30,000 items on a WebSocket': async (rig) => {
    assert.match(await talk(rig, [[JSON.stringify({ type: 'response.create', model: 'lowered', input }), true]]), /completed/);
  },
  'a thousand frames of one byte, the most that a message may have': async (rig) => {
    assert.match(await talk(rig, fragments(1_000)), /completed/);
  },
  '20,000 frames of one byte': async (rig) => {
    assert.equal(await talk(rig, fragments(20_000)), 'closed 1008');
  },
  'a compaction of 30,000 items': async (rig) => {
    const answer = await rig.post({ model: 'lowered', input }, KEY, '/v1/responses/compact');
    const said = await answer.text();
    assert.equal(answer.status, 200, said.slice(0, 300));
  },
};

for (const [name, attack] of Object.entries(SEQUENCES)) {
  test(`F47: ${name}: another key's stream is stalled for no longer than ${STALL_MS} ms`, async (t) => {
    await withRig({ models: { m: CHEAP, free: CHEAP, lowered: { ...CHEAP, compaction: 'summary' } } }, async (rig) => {
      const least = await leastTurn(rig, STALL_MS, () => attack(rig));
      figure(t, `${name}: the longest turn of the event loop`, `${Math.round(least)} ms`);
      assert.ok(least <= STALL_MS, `a turn took ${least.toFixed(1)} ms`);
    });
  });
}
