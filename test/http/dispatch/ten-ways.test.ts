/**
 * One of three Channels fails in each of ten ways, under many concurrent streams: no client sees what failover could have hidden,
 * no stream is spliced from two upstreams, and all of them end (the runner's limit of a test says if one does not).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Script } from '../../../src/simulator/script.ts';
import { eventually, MODELS, testGateway } from '../../support/test-gateway.ts';
import { formChannel, startVendors, type TextType, upstreamForms } from '../../support/upstream-forms.ts';
import { sized } from '../../support/sampled.ts';

const STREAMS = sized(40, 200);
const FIRST_DATA_MS = 400;

const WAYS: Readonly<Record<string, Partial<Script>>> = {
  'a 500': { faults: [{ type: 'status', status: 500 }] },
  'a 529': { faults: [{ type: 'status', status: 529 }] },
  'a 429': { faults: [{ type: 'status', status: 429 }] },
  'a refused credential': { faults: [{ type: 'status', status: 401 }] },
  'a web page': { faults: [{ type: 'html', status: 200 }] },
  'a connection that is cut at once': { faults: [{ type: 'cut', at: 0 }] },
  'an error as its first event': { faults: [{ type: 'error-event', at: 0 }] },
  'an empty 200': { faults: [{ type: 'end', at: 0 }] },
  garbage: { faults: [{ type: 'garbage', at: 0 }] },
  silence: { faults: [{ type: 'silent' }] },
};

const FORMS = upstreamForms(import.meta.filename);

function channelOf(index: number, type: TextType, url: string, more: object = {}): object {
  const form = FORMS.find(({ name }) => name === type) ?? assert.fail(type);
  return formChannel(form, url, { id: `c${index}`, models: ['m'], ...more });
}

const WORDS = ['the ', 'whole ', 'answer ', 'of ', 'upstream '];

for (const [way, sickness] of Object.entries(WAYS)) {
  test(`${way}: ${STREAMS} streams, and each is one whole answer of one upstream`, async (t) => {
    const upstreams = await Promise.all([0, 1, 2].map(() => startVendors({ journal: 1 })));
    t.after(() => Promise.all(upstreams.map((upstream) => upstream.close())));
    for (const [index, upstream] of upstreams.entries()) {
      const reply = { pieces: [{ type: 'text' as const, text: [...WORDS, String(index)] }], usage: { input: 3, output: 6 } };
      upstream.enqueue({ times: 1_000_000, reply, pace: { ms: 1 }, ...(index === 0 ? sickness : {}) });
    }
    await using gateway = await testGateway(
      {
        channels: upstreams.map(({ url }, index) =>
          channelOf(index, index === 1 ? 'chat_completion' : 'messages', url, {
            // The healthy ones may be slow on a busy machine.
            ...(index === 0 ? { timeouts: { first_data_ms: FIRST_DATA_MS } } : {}),
          }),
        ),
        models: MODELS,
        // The circuit must not hide the sick Channel from most of the streams.
        health: { failures: 1_000_000, refused_cooldown_ms: 1 },
      },
      { level: 'error' },
    );
    const texts = await Promise.all(
      Array.from({ length: STREAMS }, async (_, index) => {
        const messages = [{ role: 'user', content: `conversation ${index}` }];
        const response = await gateway.post('/v1/messages', { model: 'm', max_tokens: 100, stream: true, messages });
        assert.equal(response.status, 200);
        return await response.text();
      }),
    );
    for (const text of texts) {
      const said = [...text.matchAll(/"type":"text_delta","text":"([^"]*)"/g)].map(([, words]) => words).join('');
      assert.match(said, /^the whole answer of upstream [12]$/);
      assert.equal(text.match(/event: message_start\n/g)?.length, 1);
      assert.match(text, /event: message_stop\n[^\n]*\n\n$/);
    }
    await eventually(() => gateway.store.settled.length === STREAMS, 'every exchange is settled');
    const { settled } = gateway.store;
    assert.ok(settled.every(({ status, usage }) => status === 'success' && usage?.input === 3));
    assert.ok(
      settled.some(({ attempts }) => attempts.length > 1),
      'the sick Channel was asked',
    );
    for (const { attempts } of settled) {
      assert.ok(attempts.filter(({ channelId }) => channelId === 'c0').every(({ errorCode }) => errorCode !== undefined));
    }
    assert.equal(gateway.store.held.size, 0);
  });
}

test('a Channel that breaks off in the middle: those streams end with an error, and are never continued by another', async (t) => {
  const upstreams = await Promise.all([0, 1, 2].map(() => startVendors({ journal: 1 })));
  t.after(() => Promise.all(upstreams.map((upstream) => upstream.close())));
  for (const [index, upstream] of upstreams.entries()) {
    const reply = { pieces: [{ type: 'text' as const, text: [...WORDS, String(index)] }], usage: { input: 3, output: 6 } };
    upstream.enqueue({
      times: 1_000_000,
      reply,
      ...(index === 0 ? { faults: [{ type: 'cut', at: 5 } as const], pace: { ms: 2 } } : {}),
    });
  }
  await using gateway = await testGateway(
    {
      channels: upstreams.map(({ url }, index) => channelOf(index, 'messages', url)),
      models: MODELS,
      health: { failures: 1_000_000 },
    },
    { level: 'error' },
  );
  const texts = await Promise.all(
    Array.from({ length: STREAMS }, async (_, index) => {
      const messages = [{ role: 'user', content: `conversation ${index}` }];
      return await (await gateway.post('/v1/messages', { model: 'm', max_tokens: 100, stream: true, messages })).text();
    }),
  );
  let broken = 0;
  for (const text of texts) {
    const said = [...text.matchAll(/"type":"text_delta","text":"([^"]*)"/g)].map(([, words]) => words).join('');
    if (/event: error\n/.test(text)) {
      broken += 1;
      assert.ok('the whole answer of upstream 0'.startsWith(said), said);
      assert.doesNotMatch(text, /message_stop/);
    } else assert.match(said, /^the whole answer of upstream [12]$/);
  }
  assert.ok(broken > 0 && broken < STREAMS, `${broken} streams broke`);
});
