/** `mizu check`: what is no mistake of the file and yet not what its writer meant is a note. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codecs } from '../../src/codecs/registry.ts';
import { parseConfig } from '../../src/http/config/parse.ts';
import { checkVerb } from '../../src/cli/check.ts';
import { parsePrice } from '../../src/store/prices.ts';
import { typed } from '../support/verbs.ts';

interface Checked {
  readonly notes: string[];
  readonly problems: { readonly path: string; readonly message: string }[];
}

/** What the verb prints of a file; its exit code must be `expected`. */
async function checked(expected: number, file: object, readFile = () => ''): Promise<Checked> {
  const printed: string[] = [];
  const config = () =>
    parseConfig(JSON.stringify(file), {
      ...{ env: {}, readFile, parsePrice, path: '/etc/mizu/mizu.config.json' },
      ...{ revision: 1, nowMs: 0 },
    });
  const code = await typed(
    [checkVerb(codecs.textTypes)],
    ['check'],
    { json: true },
    { config },
    (text) => void printed.push(text),
  );
  assert.equal(code, expected);
  return JSON.parse(printed.join(''));
}

const notesOf = async (file: object, readFile?: () => string): Promise<string[]> => (await checked(0, file, readFile)).notes;

const channel = (type: string, models: readonly string[], options: object = {}) => ({
  ...{ id: type, type, base_url: 'https://h.example', models, options },
});
const price = { input: '1', output: '2' };

test('a model whose channels are all out of service is served by none', async () => {
  const out = { ...channel('messages', ['text']), weight: 0 };
  const file = (...channels: object[]) => ({ channels, models: { text: { price } } });
  assert.deepEqual(await notesOf(file(out)), ['model text is served by no channel']);
  assert.deepEqual(await notesOf(file({ ...channel('messages', ['text']), disabled: true })), [
    'model text is served by no channel',
  ]);
  assert.deepEqual(await notesOf(file(out, channel('responses', ['text']))), []);
});

test('a model whose channels cannot serve its kind is named', async () => {
  const models = {
    text: { price },
    vectors: { kind: 'embedding', price: { input: '1' } },
    picture: { kind: 'image', price: { image: '1' } },
    film: { kind: 'video', price: { video: '1' } },
  };
  const names = Object.keys(models);
  assert.deepEqual(await notesOf({ channels: [channel('ark_video', names)], models }), [
    'model text is served by no channel that can answer a model of kind text',
    'model vectors is served by no channel that can answer a model of kind embedding',
    'model picture is served by no channel that can answer a model of kind image',
  ]);
  assert.deepEqual(await notesOf({ channels: [channel('responses', names)], models }), [
    'model picture is served by no channel that can answer a model of kind image',
    'model film is served by no channel that can answer a model of kind video',
  ]);
  const tool = { image_enable_openai_generation_tool: true };
  assert.deepEqual(
    await notesOf({ channels: [channel('responses', names, tool), channel('minimax_video', ['film'])], models }),
    [],
  );
  assert.deepEqual(await notesOf({ models: { text: {} } }), [
    'model text has no price: it is not offered',
    'model text is served by no channel',
  ]);
});

test('a channel that was hardly meant as it stands is named: an endpoint as its base, a variable without braces', async () => {
  const at = (id: string, base_url: string, more: object = {}) => ({
    id,
    type: 'chat_completion',
    base_url,
    models: ['m'],
    ...more,
  });
  const channels = [
    at('a', 'https://h.example/v1/chat/completions/', { api_key: '$SOME_KEY' }),
    at('b', 'https://h.example/v1/chat/completions', { options: { path: '/x' } }),
    at('c', 'https://h.example/completions-proxy/v1', { api_key: 'sk-$' }),
  ];
  assert.deepEqual(await notesOf({ channels, models: { m: { price } } }), [
    'channel a: base_url ends in /completions, but the gateway appends the endpoint itself',
    `channel a: api_key is used as written; write \${NAME} to read a variable`,
  ]);
  for (const api_key of [`\${SOME_KEY`, '{env:SOME_KEY}', '%SOME_KEY%', 'os.environ/SOME_KEY'])
    assert.deepEqual(
      await notesOf({ channels: [at('a', 'https://h.example/v1', { api_key })], models: { m: { price } } }),
      [`channel a: api_key is used as written; write \${NAME} to read a variable`],
      api_key,
    );
});

test('where a price of the price book comes from is a note, and what of it has no place here', async () => {
  const book = { 'acme/m': { mode: 'chat', input_cost_per_token: 1e-6, output_cost_per_token: 1e-6, input_cost_per_query: 1 } };
  const file = { price_book: 'book.json', channels: [channel('messages', ['m', 'mine'])], models: { m: {}, mine: { price } } };
  assert.deepEqual(await notesOf(file, () => JSON.stringify(book)), [
    'model m has the price of acme/m in the price book; it has no place for input_cost_per_query',
  ]);
});

test('every mistake is named at once, with its path: one in the shape hides none between keys', async () => {
  const file = {
    listen: { port: 8080 },
    operations: { port: 8080 },
    limts: {},
    channels: [
      { ...channel('messages', ['text']), base_urll: 'x' },
      { ...channel('messages', ['text', 'nothing']), id: 'b' },
      { ...channel('nonsense', ['text']), id: 'c' },
      { ...channel('messages', ['odd one']), id: 'b', base_url: 'nowhere', api_key: `\${GONE}` },
    ],
    models: { text: { price }, 'odd one': { price: { input: 'much' }, kindd: 'text' }, late: { price, fallback: ['lost'] } },
  };
  const { problems } = await checked(1, file);
  assert.deepEqual(problems.map(({ path }) => path).sort(), [
    'channels[0].base_urll',
    'channels[1].models',
    'channels[2].type',
    'channels[3].api_key',
    'channels[3].base_url',
    'limts',
    'models.late.fallback',
    'models["odd one"].kindd',
    'models["odd one"].price.input',
    'operations.port',
  ]);
});

test('a multiplier that is written as a price is a mistake at its path, which says how it is written', async () => {
  const speeds = { fast: { multiplier: '6' } };
  const file = { channels: [channel('messages', ['text'])], models: { text: { price: { ...price, speeds } } } };
  const { problems } = await checked(1, file);
  const message = 'is not a price: a multiplier stands in the place of prices, as in "speeds": { "fast": "6" }';
  assert.deepEqual(problems, [{ path: 'models.text.price.speeds.fast.multiplier', message }]);
});
