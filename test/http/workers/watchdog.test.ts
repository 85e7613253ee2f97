/** Which workers are killed for their silence. That a process which was stopped is replaced: slow/processes/silent-worker.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Watchdog } from '../../../src/http/workers/watchdog.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

function kennel(silenceMs = 10_000) {
  const clock = createFakeClock();
  const killed: string[] = [];
  const told: object[] = [];
  let allowed = silenceMs;
  const watchdog = new Watchdog({ silenceMs: () => allowed, clock, log: { error: (facts: object) => void told.push(facts) } });
  const worker = (name: string, pid: number) => ({
    process: { pid, kill: (signal: string) => killed.push(`${name} ${signal}`) },
  });
  const watching = watchdog.start();
  return { clock, killed, told, watchdog, worker, watching, allow: (ms: number) => (allowed = ms) };
}

test('one that says nothing is killed; one that beats, or has only begun to start, is not', () => {
  const { clock, killed, told, watchdog, worker, watching } = kennel();
  const [silent, busy, starting] = [worker('silent', 1), worker('busy', 2), worker('starting', 3)];
  watchdog.begin(silent);
  watchdog.begin(busy);
  watchdog.heard(starting);
  for (let second = 0; second < 10; second++) {
    clock.advance(1_000);
    if (second % 5 === 0) watchdog.heard(busy);
  }
  assert.deepEqual(killed, []);
  clock.advance(1_000);
  assert.deepEqual([killed, told], [['silent SIGKILL'], [{ pid: 1, silent_ms: 11_000 }]]);
  watchdog.ended(silent);
  for (let second = 0; second < 60; second++) {
    clock.advance(1_000);
    watchdog.heard(busy);
  }
  assert.equal(killed.length, 1);
  watching.stop();
  assert.equal(clock.pending, 0);
});

test('of two the one that was silent for longer dies first, and the other may go on where it only waited for that one', () => {
  const { clock, killed, watchdog, worker } = kennel();
  const [holder, waiting] = [worker('holder', 1), worker('waiting', 2)];
  watchdog.begin(holder);
  watchdog.begin(waiting);
  clock.advance(1_000);
  watchdog.heard(waiting);
  clock.advance(10_000);
  assert.deepEqual(killed, ['holder SIGKILL']);
  watchdog.ended(holder);
  clock.advance(4_000);
  watchdog.heard(waiting);
  clock.advance(10_000);
  assert.deepEqual(killed, ['holder SIGKILL']);
  clock.advance(1_000);
  assert.deepEqual(killed, ['holder SIGKILL', 'waiting SIGKILL']);
});

test('where the wall clock jumps by a month nobody is killed, nor where silence is allowed for ever; a new bound counts at once', () => {
  const { clock, killed, watchdog, worker, allow } = kennel(0);
  watchdog.begin(worker('silent', 1));
  clock.jump(30 * 86_400_000);
  clock.advance(3_600_000);
  assert.deepEqual(killed, []);
  allow(5_000);
  clock.advance(1_000);
  assert.deepEqual(killed, ['silent SIGKILL']);
});
