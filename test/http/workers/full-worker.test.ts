import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { refuseWhenAllAreFull } from '../../../src/http/workers/full-worker.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

test('a full worker gives back one connection now and then, for one that has room, and refuses the others', () => {
  const clock = createFakeClock();
  const server = createServer();
  refuseWhenAllAreFull(server, clock);
  // What Node looks at for each connection that is too many.
  const refuses = (): unknown => Reflect.get(server, 'dropMaxConnection');
  assert.deepEqual([refuses(), refuses(), refuses()], [false, true, true]);
  clock.advance(10);
  assert.deepEqual([refuses(), refuses()], [false, true]);
});
