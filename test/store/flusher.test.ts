import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Flusher } from '../../src/store/settlements/flusher.ts';

/** A queue of numbered rows behind an engine that can be told to refuse, and a clock that is turned by hand. */
class Rig {
  pending = 0;
  refuses = false;
  writes = 0;
  readonly timers = new Map<() => void, number>();
  readonly flusher = new Flusher({
    clock: {
      now: () => 0,
      after: (ms, callback) => {
        this.timers.set(callback, ms);
        return () => this.timers.delete(callback);
      },
    },
    flushMs: 10,
    batch: 3,
    pending: () => this.pending,
    write: async () => {
      this.writes += 1;
      await Promise.resolve();
      if (this.refuses) return false;
      this.pending = Math.max(0, this.pending - 3);
      return true;
    },
  });

  add(rows: number): void {
    for (let row = 0; row < rows; row++) {
      this.pending += 1;
      this.flusher.rowAdded();
    }
  }

  /** The timers that wait, in milliseconds. */
  get waits(): number[] {
    return [...this.timers.values()];
  }

  async fire(): Promise<void> {
    const [callback] = this.timers.keys();
    assert.ok(callback);
    this.timers.delete(callback);
    callback();
    await this.flusher.flush();
  }
}

test('rows wait a little for others, a whole batch does not', async () => {
  const rig = new Rig();
  rig.add(2);
  assert.deepEqual([rig.waits, rig.writes], [[10], 0]);
  rig.add(1);
  assert.deepEqual([rig.waits, rig.writes], [[], 1]);
  await rig.flusher.flush();
  assert.deepEqual([rig.pending, rig.flusher.flushing, rig.waits], [0, false, []]);
});

test('one flush at a time, and the next at once while a whole batch is left; fewer rows wait for others again', async () => {
  const rig = new Rig();
  rig.add(8);
  assert.equal(rig.writes, 1);
  assert.equal(rig.flusher.flush(), rig.flusher.flush());
  while (rig.flusher.flushing) await rig.flusher.flush();
  assert.deepEqual([rig.pending, rig.writes, rig.waits], [2, 2, [10]]);
  rig.add(1);
  while (rig.flusher.flushing) await rig.flusher.flush();
  assert.deepEqual([rig.pending, rig.writes, rig.waits], [0, 3, []]);
});

test('after a refusal it is tried again after a pause, however many rows come meanwhile', async () => {
  const rig = new Rig();
  rig.refuses = true;
  rig.add(3);
  assert.equal(await rig.flusher.flush(), false);
  assert.deepEqual([rig.waits, rig.flusher.failing], [[250], true]);
  rig.add(5);
  assert.deepEqual([rig.waits, rig.writes], [[250], 1]);
  rig.refuses = false;
  await rig.fire();
  while (rig.flusher.flushing) await rig.flusher.flush();
  assert.deepEqual([rig.pending, rig.flusher.failing, rig.waits], [2, false, [10]]);
});

test('stopped: nothing by itself any more, but who asks is served', async () => {
  const rig = new Rig();
  rig.add(2);
  rig.flusher.stop();
  assert.deepEqual(rig.waits, []);
  rig.pending = 5;
  await rig.flusher.flush();
  assert.deepEqual([rig.pending, rig.writes, rig.waits, rig.flusher.flushing], [2, 1, [], false]);
});
