/** Which Channels may serve a request, and in which order they are tried. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { orderChannels } from '../../../src/http/dispatch/candidates.ts';
import { channelsOf } from './channels.ts';

const ids = (channels: readonly { readonly id: string }[]): string => channels.map(({ id }) => id).join('');
/** Draws these one after the other. */
function draws(...values: readonly number[]): () => number {
  let at = 0;
  return () => values[at++] ?? assert.fail('one draw for each Channel');
}

test('lower priority numbers first, whatever is drawn', () => {
  const channels = channelsOf({ id: 'a', priority: 2 }, { id: 'b', priority: 0 }, { id: 'c', priority: 1 });
  assert.equal(ids(orderChannels(channels, { random: draws(0, 0.999, 0.5) })), 'bca');
});

test('within one priority the draw decides, and a Channel of more weight wins as often as it weighs', () => {
  const channels = channelsOf({ id: 'a', weight: 1 }, { id: 'b', weight: 3 });
  assert.equal(ids(orderChannels(channels, { random: draws(0.1, 0.9) })), 'ab');
  assert.equal(ids(orderChannels(channels, { random: draws(0.9, 0.1) })), 'ba');
  const steps = 100;
  let first = 0;
  for (let a = 0; a < steps; a++)
    for (let b = 0; b < steps; b++) {
      const [winner] = orderChannels(channels, { random: draws((a + 0.5) / steps, (b + 0.5) / steps) });
      if (winner?.id === 'b') first += 1;
    }
  assert.ok(Math.abs(first / steps ** 2 - 0.75) < 0.01, `${first} of ${steps ** 2}`);
});

test('the Channel of the conversation comes first, and the others keep their order', () => {
  const channels = channelsOf({ id: 'a', priority: 0 }, { id: 'b', priority: 1 }, { id: 'c', priority: 2 });
  const random = () => 0.5;
  for (const [preferred, order] of [
    ['a', 'abc'],
    ['b', 'bac'],
    ['c', 'cab'],
    ['gone', 'abc'],
  ] as const)
    assert.equal(ids(orderChannels(channels, { random, preferred })), order);
});

test('a single Channel needs no draw, and none is no order', () => {
  assert.equal(ids(orderChannels(channelsOf({ id: 'a' }), { random: () => assert.fail('nothing to draw') })), 'a');
  assert.deepEqual(orderChannels([], { random: () => assert.fail('nothing to draw') }), []);
});
