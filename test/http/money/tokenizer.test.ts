/** The tokenizer: a failure to load it costs nobody a charge, a row or a line, and is not remembered. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CountTokens } from '../../../src/http/money/tokenizer.ts';
import { Tokenizer } from '../../../src/http/money/tokenizer.ts';
import { createLogger } from '../../../src/http/operations/logger.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { fakeUpstream, openStream } from '../../support/fake-upstream.ts';
import { ask, channel, eventually, MODELS, testGateway } from '../../support/test-gateway.ts';

const LETTERS: CountTokens = (text) => text.length;

function setUp() {
  const clock = createFakeClock();
  const lines: string[] = [];
  const loads: PromiseWithResolvers<CountTokens>[] = [];
  const load = () => {
    const loading = Promise.withResolvers<CountTokens>();
    loads.push(loading);
    return loading.promise;
  };
  const tokenizer = new Tokenizer(clock, createLogger('debug', { write: (line: string) => void lines.push(line) }), load);
  return { clock, lines, loads, tokenizer };
}

const turns = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('four bytes are a token until it is loaded; it is loaded once', async () => {
  const { clock, lines, loads, tokenizer } = setUp();
  assert.equal(tokenizer.tried, false);
  assert.deepEqual([await tokenizer.count('abcdef'), await tokenizer.count('')], [2, 0]);
  loads[0]?.resolve(LETTERS);
  await tokenizer.firstTry;
  assert.equal(tokenizer.tried, true);
  assert.equal(await tokenizer.count('abcdef'), 6);
  assert.equal(await tokenizer.count('世'.repeat(65_537)), Math.ceil((3 * 65_537) / 4), 'too long for it');
  clock.advance(3_600_000);
  assert.deepEqual([loads.length, lines.length, clock.pending], [1, 0, 0]);
});

test('a failure is told, and tried again each minute; one that hangs is a failure, and what it brings later is used', async () => {
  const { clock, lines, loads, tokenizer } = setUp();
  loads[0]?.reject(new Error('EMFILE'));
  await tokenizer.firstTry;
  assert.equal(tokenizer.tried, true);
  assert.match(lines.join(''), /EMFILE/);
  clock.advance(59_999);
  assert.equal(loads.length, 1);
  clock.advance(1);
  assert.equal(loads.length, 2);
  assert.equal(await tokenizer.count('abcdef'), 2);
  clock.advance(10_000);
  await turns();
  assert.equal(lines.length, 2);
  clock.advance(60_000);
  assert.equal(loads.length, 3);
  loads[1]?.resolve(LETTERS);
  await turns();
  assert.equal(await tokenizer.count('abcdef'), 6);
  loads[2]?.reject(new Error('again'));
  await turns();
  clock.advance(60_000);
  assert.equal(loads.length, 3, 'it is there');
  tokenizer.close();
});

test('a text that it cannot count is counted by its bytes, and told; closed, it tries no more', async () => {
  const { clock, lines, loads, tokenizer } = setUp();
  loads[0]?.resolve(() => {
    throw new Error('odd text');
  });
  await tokenizer.firstTry;
  assert.equal(await tokenizer.count('abcdef'), 2);
  assert.match(lines.join(''), /odd text[\s\S]*a text could not be counted: its bytes are/);
  const other = setUp();
  other.loads[0]?.reject(new Error('EMFILE'));
  await other.tokenizer.firstTry;
  other.tokenizer.close();
  assert.equal(other.clock.pending, 0);
  assert.equal(clock.pending, 0);
});

/** A chat stream that reports no usage. */
const SILENT = ['{"role":"assistant","content":"hello there"},"finish_reason":null', '{},"finish_reason":"stop"'].map(
  (choice) => `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":${choice}}]}\n\n`,
);

test('when the tokenizer fails to load, streams without usage are charged by their bytes, with a row and a line each', async () => {
  await using upstream = await fakeUpstream(({ socket }) => {
    const stream = openStream(socket);
    for (const event of SILENT) stream.raw(event);
    stream.raw('data: [DONE]\n\n');
    stream.end();
  });
  const loading = Promise.withResolvers<CountTokens>();
  await using gateway = await testGateway(
    { channels: [channel(upstream.url, { type: 'chat_completion' })], models: MODELS },
    { loadTokenizer: () => loading.promise },
  );
  const ready = async () => {
    const response = await fetch(`${gateway.url}/readyz`);
    return [response.status, await response.text()];
  };
  assert.deepEqual(await ready(), [503, '{"status":"unready","reasons":["tokenizer"]}']);
  loading.reject(new Error('EMFILE: too many open files'));
  await gateway.running.gateway.tokenizer.firstTry;
  assert.deepEqual(await ready(), [200, '{"status":"ok"}'], 'it waits for the first try, not for its success');
  for (let round = 1; round <= 3; round++) {
    const text = await (await gateway.post('/v1/messages', ask({ stream: true }))).text();
    assert.match(text, /message_stop/);
    await eventually(() => gateway.store.settled.length === round, 'it is settled');
    const row = gateway.store.settled.at(-1);
    assert.deepEqual(row?.usage, { input: 1, output: 3 });
    assert.ok((row?.charge?.total ?? 0n) > 0n);
    assert.deepEqual(row?.charge?.flags, ['estimated']);
    assert.equal(gateway.store.held.size, 0);
    assert.equal(gateway.logLines.filter((line) => line.includes('"msg":"exchange"')).length, round);
  }
});
