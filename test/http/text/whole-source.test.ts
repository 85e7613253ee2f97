/** A whole JSON answer to a request for a stream comes in portions: at the pace of its client, and beside others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CanonicalEvent } from '../../../src/codecs/canonical/event.ts';
import { codecs } from '../../../src/codecs/registry.ts';
import { wholeAsSource } from '../../../src/http/text/answer-stream.ts';
import type { Step } from '../../../src/codecs/canonical/event.ts';
import { fakeUpstream, jsonAnswer, wholeMessage } from '../../support/fake-upstream.ts';
import { ask, channel, MODELS, testGateway } from '../../support/test-gateway.ts';
import { decodeContext, ownerOf } from '../../support/wire.ts';

const TEXTS = 3000;
const said = { ...wholeMessage(''), content: Array.from({ length: TEXTS }, (_, at) => ({ type: 'text', text: `w${at} ` })) };

test('a portion is small, the next one waits until the source is ready, and together they are the answer', async () => {
  const upstream = codecs.upstream('messages');
  const step = upstream.decodeResponse(JSON.stringify(said), decodeContext(ownerOf(upstream)));
  const source = wholeAsSource(step, (failure) => failure);
  const events: CanonicalEvent[] = [];
  while (!source.ended) {
    const taken: Step[] = [];
    assert.equal(source.take(taken), true);
    for (const one of taken) events.push(...one.events);
    assert.ok(taken.flatMap((one) => one.events).length <= 64);
    if (source.ended) break;
    assert.equal(source.take(taken), false);
    await new Promise<void>((resolve) => source.ready(resolve));
  }
  assert.deepEqual(events, step.events);
  assert.equal(source.take([]), true);
});

test('it reaches a streaming client whole, and one that leaves ends it', async () => {
  await using upstream = await fakeUpstream(jsonAnswer(200, said));
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
  const answer = await gateway.post('/v1/messages', ask({ stream: true }));
  const text = await answer.text();
  const words = [...text.matchAll(/"text":"(w\d+ )"/g)].map(([, word]) => word);
  assert.deepEqual(
    words,
    said.content.map((part) => part.text),
  );
  assert.equal(text.match(/event: message_stop/g)?.length, 1);
  const left = new AbortController();
  const other = await gateway.post('/v1/messages', ask({ stream: true }), { signal: left.signal });
  await other.body?.getReader().read();
  left.abort();
  assert.equal((await gateway.post('/v1/messages', ask())).status, 200);
});
