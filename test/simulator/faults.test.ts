/** Every fault does on the wire what its name says. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import type { Reply } from '../../src/simulator/reply.ts';
import type { Fault } from '../../src/simulator/script.ts';
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts';
import { ask } from './ask.ts';

let sim: Simulator;
before(async () => {
  sim = await startSimulator();
});
after(() => sim.close());
beforeEach(() => sim.reset());

const REPLY: Reply = { pieces: [{ type: 'text', text: ['one ', 'two ', 'three'] }], id: 'chatcmpl-fixed' };
const body = { model: 'm', stream: true, messages: [{ role: 'user', content: 'x' }] };
const url = () => `${sim.url}/v1/chat/completions`;

/** Frames of this answer: start, one, two, three, finish, [DONE]. */
async function with_(...faults: Fault[]) {
  sim.enqueue({ reply: REPLY, faults });
  return ask(url(), body);
}
const countOf = (text: string, part: string) => text.split(part).length - 1;

test('without a fault: five data frames and [DONE]', async () => {
  const { text, status, broken } = await with_();
  assert.equal(status, 200);
  assert.equal(broken, false);
  assert.equal(countOf(text, 'data: '), 6);
});

test('status, with the vendor’s body, another body, headers', async () => {
  const plain = await with_({ type: 'status', status: 503, message: 'busy', headers: { 'retry-after': '3' } });
  assert.equal(plain.status, 503);
  assert.equal(plain.headers['retry-after'], '3');
  assert.equal(JSON.parse(plain.text).error.message, 'busy');
  const own = await with_({ type: 'status', status: 400, body: { detail: 'mine' } });
  assert.deepEqual(JSON.parse(own.text), { detail: 'mine' });
});

test('html, content-type, gzip, garbage', async () => {
  const page = await with_({ type: 'html' });
  assert.deepEqual([page.status, page.headers['content-type']], [502, 'text/html']);
  assert.match(page.text, /^<html>/);
  assert.equal((await with_({ type: 'content-type', value: 'text/plain' })).headers['content-type'], 'text/plain');
  const zipped = await with_({ type: 'gzip' });
  assert.equal(zipped.headers['content-encoding'], 'gzip');
  assert.match(gunzipSync(zipped.bytes).toString(), /\[DONE\]/);
  assert.match((await with_({ type: 'garbage', at: 2 })).text, /"one "[^\n]*\n\ndata: \{"not": json\n\n/);
  assert.match((await with_({ type: 'garbage', at: 0, text: '?' })).text, /^\?data: /);
});

test('cut at an event and at a byte breaks the connection after what came before', async () => {
  const atEvent = await with_({ type: 'cut', at: 2 });
  assert.equal(atEvent.broken, true);
  assert.equal(countOf(atEvent.text, 'data: '), 2);
  const atByte = await with_({ type: 'cut', atByte: 17 });
  assert.deepEqual([atByte.broken, atByte.bytes.length], [true, 17]);
  assert.equal(sim.requests[1]?.state, 'cut');
});

test('end at an event and at a byte ends the body cleanly', async () => {
  const atEvent = await with_({ type: 'end', at: 3 });
  assert.deepEqual([atEvent.broken, countOf(atEvent.text, 'data: ')], [false, 3]);
  const atByte = await with_({ type: 'end', atByte: 40 });
  assert.deepEqual([atByte.broken, atByte.bytes.length], [false, 40]);
});

test('terminal faults: no-terminal, done-only', async () => {
  const none = await with_({ type: 'no-terminal' });
  assert.ok(!none.text.includes('"finish_reason":"stop"') && !none.text.includes('[DONE]'));
  const done = await with_({ type: 'done-only' });
  assert.ok(!done.text.includes('"finish_reason":"stop"') && done.text.endsWith('data: [DONE]\n\n'));
});

test('error-event ends the stream', async () => {
  const failed = await with_({ type: 'error-event', at: 2 });
  assert.match(failed.text, /"error":\{[^\n]+\n\n$/);
});

test('stall sends nothing more until the caller leaves, and the journal says who ended it', async () => {
  sim.enqueue({ reply: REPLY, faults: [{ type: 'stall', at: 3 }] });
  const heard = await ask(url(), body, { leaveAt: 'two ' });
  assert.ok(!heard.text.includes('three'));
  assert.equal(await sim.requests[0]?.over, 'left');
});

test('silent: no status ever, until the simulator closes', async () => {
  const mute = await startSimulator({ script: { faults: [{ type: 'silent' }] } });
  const answer = assert.rejects(ask(`${mute.url}/v1/chat/completions`, body));
  while (mute.requests[0] === undefined) await new Promise((resolve) => setTimeout(resolve, 2));
  assert.deepEqual([mute.requests[0].state, mute.requests[0].status], ['open', 0]);
  await mute.close();
  await answer;
});

test('slow headers come late and the answer is whole', async () => {
  const heard = await with_({ type: 'slow-headers', ms: 20 });
  assert.match(heard.text, /\[DONE\]/);
});

test('pace: a packet, one byte chunks, an event a write, all the same bytes', async () => {
  const texts: string[] = [];
  for (const cut of ['packet', 'event', 1, 7] as const) {
    sim.enqueue({ reply: REPLY, pace: { cut } });
    const heard = await ask(url(), body);
    texts.push(heard.text.replace(/"created":\d+/g, ''));
    if (cut === 'packet') assert.equal(heard.pieces.length, 1);
    if (cut === 1) assert.ok(heard.pieces.every(({ length }) => length === 1));
    if (cut === 'event') assert.equal(heard.pieces.length, 6);
  }
  assert.equal(new Set(texts).size, 1);
});

test('raw bytes are sent as given, in the given writes', async () => {
  const bytes = Buffer.from([0x64, 0x61, 0xff, 0x00]);
  sim.enqueue({ raw: { status: 201, headers: { 'Content-Type': 'x/y' }, chunks: ['data: a\n', bytes] } });
  const heard = await ask(url(), body);
  assert.deepEqual([heard.status, heard.headers['content-type']], [201, 'x/y']);
  assert.deepEqual(heard.bytes, Buffer.concat([Buffer.from('data: a\n'), bytes]));
});

test('a script comes by model name, by predicate, in its turn', async () => {
  sim.define('greet', { reply: { pieces: [{ type: 'text', text: ['named'] }] } });
  for (const model of ['script:greet', 'script:greet/gpt']) {
    assert.match((await ask(url(), { ...body, model })).text, /"named"/);
  }
  sim.enqueue({ match: ({ model }) => model === 'only-this', reply: { pieces: [{ type: 'text', text: ['matched'] }] } });
  sim.enqueue({ reply: { pieces: [{ type: 'text', text: ['any'] }] } });
  assert.match((await ask(url(), body)).text, /"any"/);
  assert.match((await ask(url(), { ...body, model: 'only-this' })).text, /"matched"/);
  assert.deepEqual(
    sim.requests.map(({ path }) => path),
    Array.from({ length: 4 }, () => '/v1/chat/completions'),
  );
});

test('a script that cannot be played is a loud 599, not a vendor’s error', async () => {
  sim.enqueue({ reply: { pieces: [{ type: 'image', data: '' }] } });
  const heard = await ask(`${sim.url}/v1/messages`, { ...body, stream: false, max_tokens: 9 });
  assert.equal(heard.status, 599);
  assert.match(heard.text, /sends no images/);
});

test('a journal of no length keeps nothing of what was received', async (t) => {
  const forgetful = await startSimulator({ journal: 0 });
  t.after(() => forgetful.close());
  assert.equal((await ask(`${forgetful.url}/v1/chat/completions`, body)).status, 200);
  assert.deepEqual(forgetful.requests, []);
});
