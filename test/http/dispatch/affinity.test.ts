/** Which Channel a conversation was last answered by, and what makes two requests one conversation. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import type { Item, MediaSource } from '../../../src/codecs/canonical/item.ts';
import type { CanonicalRequest } from '../../../src/codecs/canonical/request.ts';
import { Affinity, conversationOf } from '../../../src/http/dispatch/affinity.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { requestOf } from '../../support/wire.ts';

test('the last Channel that answered well is remembered, and forgotten when it fails or nobody asks', async () => {
  const clock = createFakeClock(0);
  const affinity = new Affinity(clock, { maxEntries: 10, idleMs: 1000 });
  clock.advance(1);
  affinity.succeeded('x', 'a');
  affinity.failed('x', 'b');
  assert.equal(affinity.channelOf('x'), 'a', 'another Channel failed');
  affinity.succeeded('x', 'b');
  assert.equal(affinity.channelOf('x'), 'b');
  affinity.failed('x', 'b');
  assert.equal(affinity.channelOf('x'), undefined);
  affinity.succeeded('x', 'a');
  // The cache asks its clock once a millisecond of the real one.
  const later = async (ms: number): Promise<void> => {
    clock.advance(ms);
    await setTimeout(5);
  };
  await later(900);
  assert.equal(affinity.channelOf('x'), 'a');
  await later(900);
  assert.equal(affinity.channelOf('x'), 'a', 'to ask is to use');
  await later(1100);
  assert.equal(affinity.channelOf('x'), undefined);
});

test('of too many conversations the oldest are forgotten', () => {
  const affinity = new Affinity(createFakeClock(0), { maxEntries: 2, idleMs: 1000 });
  for (const conversation of ['x', 'y', 'z']) affinity.succeeded(conversation, 'a');
  assert.deepEqual([affinity.size, affinity.channelOf('x'), affinity.channelOf('z')], [2, undefined, 'a']);
});

const text = (role: 'system' | 'user' | 'assistant', said: string, turn: number): Item => ({
  kind: 'text',
  role,
  text: said,
  citations: [],
  turn,
});
const SYSTEM = text('system', 'Be brief.', 0);
const FIRST = text('user', 'hello', 1);
const of = (items: readonly Item[], members: Partial<CanonicalRequest> = {}, keyId = 'k'): string =>
  conversationOf(keyId, requestOf('messages', { items, ...members }));

test('a growing history stays one conversation; another beginning, key or model is another', () => {
  const conversation = of([SYSTEM, FIRST]);
  assert.equal(of([SYSTEM, FIRST, text('assistant', 'hi', 2), text('user', 'and?', 3)]), conversation);
  const others = [
    of([SYSTEM, text('user', 'hallo', 1)]),
    of([text('system', 'Be long.', 0), FIRST]),
    of([FIRST]),
    of([SYSTEM, FIRST, text('user', 'in the same turn', 1)]),
    of([SYSTEM, FIRST], {}, 'other'),
    of([SYSTEM, FIRST], { model: 'other' }),
  ];
  assert.equal(new Set([conversation, ...others]).size, others.length + 1);
});

test('what a client names its conversation by goes before what it says, the more exact name first', () => {
  const names: readonly Partial<CanonicalRequest>[] = [
    { previousResponseId: 'p' },
    { conversation: { id: 'c' } },
    { promptCacheKey: 'k' },
    { sessionId: 's' },
    { metadata: { session_id: 'ms' } },
    { metadata: { conversation_id: 'mc' } },
    { metadata: { thread_id: 'mt' } },
    { metadata: { user_id: 'mu' } },
    { user: 'u' },
  ];
  for (const [at, name] of names.entries()) {
    const conversation = of([FIRST], name);
    assert.equal(of([text('user', 'anything', 1)], name), conversation, JSON.stringify(name));
    const behind = names.slice(at + 1);
    const metadata = Object.assign({}, ...behind.map((other) => other.metadata), name.metadata);
    const all = Object.assign({}, ...behind, name, { metadata });
    assert.equal(of([FIRST], all), conversation, `${JSON.stringify(name)} before those behind it`);
  }
  assert.equal(of([FIRST], { conversation: 'c' }), of([FIRST], { conversation: { id: 'c' } }), 'an object names its id');
  for (const nothing of [
    { conversation: '' },
    { conversation: { id: 7 } },
    { conversation: ['c'] },
    { metadata: { user_id: '' } },
  ])
    assert.equal(of([FIRST], nothing), of([FIRST]), JSON.stringify(nothing));
});

test('whatever stands before the end of the first turn of the user tells two conversations apart', () => {
  const picture = (source: MediaSource): Item => ({ kind: 'media', role: 'user', media: { type: 'image', source }, turn: 1 });
  const call = (callId: string): Item => ({ kind: 'toolCall', toolType: 'function', callId, tool: { name: 'f' }, input: '{}' });
  const data = 'A'.repeat(256);
  const beginnings: readonly (readonly Item[])[] = [
    [picture({ from: 'inline', mime: 'image/png', data })],
    [picture({ from: 'inline', mime: 'image/png', data: 'B'.repeat(256) })],
    [picture({ from: 'url', url: 'https://a.test' })],
    [picture({ from: 'url', url: 'https://b.test' })],
    [picture({ from: 'reference', id: 'file_1' })],
    [call('call_1'), FIRST],
    [call('call_2'), FIRST],
    [{ kind: 'refusal', text: 'no' }, FIRST],
    [{ kind: 'refusal', text: 'never' }, FIRST],
  ];
  assert.equal(new Set(beginnings.map((items) => of(items))).size, beginnings.length);
  const longer = picture({ from: 'inline', mime: 'image/png', data: `${data}C` });
  assert.equal(of([longer]), of(beginnings[0] ?? []), 'the first characters of a picture are enough');
  const { turn: _turn, ...alone } = FIRST;
  for (const next of [text('user', 'and?', 2), alone])
    assert.equal(of([alone, next]), of([alone]), 'an item without a turn is one by itself');
  const answer = text('assistant', 'of the same turn', 1);
  assert.equal(of([FIRST, answer]), of([FIRST]));
});
