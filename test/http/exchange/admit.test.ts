/** What is reserved for a request, and which models a key may use. Admission itself is tested through sockets. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkModel, estimateNanos } from '../../../src/http/exchange/admit.ts';
import { type PriceRecord, parsePrice, type Rates } from '../../../src/store/prices.ts';
import { ok } from '../../store/support/store.ts';
import { channel, KEY, MODELS, testConfig, testGateway } from '../../support/test-gateway.ts';

const rates = (price: PriceRecord): Rates => ok(parsePrice(price));

test('what is reserved: the input and the capped output at their rates, a picture at its own or that of the output, and its piece', () => {
  const asked = { input: 3, output: 7 };
  assert.equal(estimateNanos(asked, rates({ input: '1', output: '2' })), 3_000n + 14_000n);
  assert.equal(estimateNanos(asked, rates({ input: '1' })), 3_000n);
  assert.equal(estimateNanos(asked, rates({ output: '2' })), 14_000n);
  const picture = { ...asked, imageOutput: 100 };
  assert.equal(estimateNanos(picture, rates({ input: '1', output: '2' })), 17_000n + 200_000n);
  assert.equal(estimateNanos(picture, rates({ input: '1', output: '2', image_output: '30' })), 17_000n + 3_000_000n);
  assert.equal(estimateNanos(picture, rates({ image: '0.04' })), 40_000_000n);
});

test('a key uses the models that it names, or all; a class has the models of its Channels, in service or not; a long name is not repeated whole', async () => {
  const file = {
    channels: [
      channel('http://127.0.0.1:1'),
      channel('http://127.0.0.1:1', { id: 'vip', models: ['dear'], classes: ['vip'] }),
      channel('http://127.0.0.1:1', { id: 'off', models: ['off'], disabled: true }),
      channel('http://127.0.0.1:1', { id: 'idle', models: ['idle'], weight: 0 }),
      channel('http://127.0.0.1:1', { id: 'vip-off', models: ['dear-off'], classes: ['vip'], disabled: true }),
    ],
    models: { ...MODELS, dear: MODELS.m, nowhere: MODELS.m, off: MODELS.m, idle: MODELS.m, 'dear-off': MODELS.m },
  };
  const config = testConfig(file);
  await using gateway = await testGateway(file);
  const found = await gateway.store.keys.authenticate(KEY, 0);
  assert.ok(found.ok);
  const { key, account } = found.value;
  const check = (name: string, models?: readonly string[], accountClass = 'default'): string => {
    const { models: _, ...anyModel } = key;
    const principal = {
      key: models === undefined ? anyModel : { ...anyModel, models },
      account: { ...account, class: accountClass },
    };
    return checkModel(config, principal, name).name;
  };
  assert.equal(check('m'), 'm');
  assert.equal(check('m', ['dear', 'm']), 'm');
  assert.equal(check('dear', undefined, 'vip'), 'dear');
  assert.throws(() => check('m', ['dear']), { code: 'model_not_allowed' });
  assert.throws(() => check('m', []), { code: 'model_not_allowed' });
  for (const name of ['off', 'idle']) assert.equal(check(name), name);
  for (const name of ['dear', 'dear-off', 'nowhere', 'unknown', ''])
    assert.throws(() => check(name), { code: 'model_not_found' }, name);
  const repeated = (name: string) => ({ message: `The model "${name}" does not exist.` });
  assert.throws(() => check('a\n"b"'), repeated('a\\n\\"b\\"'));
  assert.throws(() => check('x'.repeat(100)), repeated('x'.repeat(100)));
  assert.throws(() => check('x'.repeat(101)), repeated(`${'x'.repeat(100)}…`));
});
