/** Channels that an operator took out of service: who hears of it, and what a store that fails does to it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { watchService } from '../../../src/http/dispatch/out-of-service.ts';
import type { Config } from '../../../src/http/config/config.ts';
import { createLogger } from '../../../src/http/operations/logger.ts';
import type { Control } from '../../../src/store/controls.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { channel, MODELS, testConfig } from '../../support/test-gateway.ts';

function setUp() {
  const clock = createFakeClock();
  const lines: string[] = [];
  const told: string[] = [];
  const store: { list(): Promise<readonly Control[]> } = { list: async () => [] };
  const listeners = new Set<(config: Config) => void>();
  const configOf = (weight: number) =>
    testConfig({ channels: ['a', 'b'].map((id) => channel('http://127.0.0.1:1', { id, weight })), models: MODELS });
  let config = configOf(3);
  const service = watchService({
    config: {
      current: () => config,
      onChange(listener) {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    },
    controls: { list: () => store.list() },
    clock,
    log: createLogger('warn', { write: (line: string) => void lines.push(line) }),
  });
  const weights = ({ channels }: Config): string => channels.map(({ id, weight }) => `${id} ${weight}`).join();
  service.onChange((next) => told.push(weights(next)));
  return {
    ...{ clock, lines, told, store, service, listeners },
    weights: () => weights(service.current()),
    reload(weight: number) {
      config = configOf(weight);
      for (const listener of listeners) listener(config);
    },
    /** A second passes, and the look that is due in it. */
    async second() {
      clock.advance(1_000);
      await new Promise((resolve) => setImmediate(resolve));
    },
    out: (...ids: readonly string[]) => {
      store.list = async () => ids.map((id) => ({ kind: 'channel', id, text: '{}' }));
    },
  };
}

test('a Channel that was taken out has no weight within a second, also behind a reload, and has it again when it is back', async () => {
  const { service, out, second, weights, told, reload, clock, listeners, lines } = setUp();
  service.start();
  await second();
  assert.deepEqual([weights(), told], ['a 3,b 3', []]);
  out('b');
  await second();
  await second();
  assert.deepEqual([weights(), told], ['a 3,b 0', ['a 3,b 0']], 'told once');
  reload(5);
  assert.deepEqual([weights(), told.at(-1)], ['a 5,b 0', 'a 5,b 0']);
  out('a');
  await second();
  assert.equal(weights(), 'a 0,b 5', 'one for another');
  out();
  await second();
  assert.equal(weights(), 'a 5,b 5');
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).channels),
    [['b'], ['a'], []],
  );
  service.stop();
  assert.deepEqual([clock.pending, listeners.size], [0, 0]);
});

test('while the store fails what was known stays; that is told once, and once more where it fails after it was well', async () => {
  const { service, store, out, second, weights, lines } = setUp();
  service.start();
  out('b');
  await second();
  const { list } = store;
  lines.length = 0;
  for (const times of [3, 2]) {
    store.list = () => Promise.reject(new Error('No.'));
    for (let failed = 0; failed < times; failed++) await second();
    store.list = list;
    await second();
  }
  assert.equal(weights(), 'a 3,b 0');
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).msg),
    Array(2).fill('which Channels are out of service could not be read'),
  );
  store.list = () => Promise.reject(new Error('No.'));
  await assert.rejects(service.look(), { message: 'No.' });
  service.stop();
  await second();
  assert.equal(lines.length, 2);
});
