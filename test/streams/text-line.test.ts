import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TextLine } from '../../src/streams/text-line.ts';
import { LONG_CHARS } from '../../src/streams/text-pieces.ts';

const LONG = 'a'.repeat(LONG_CHARS + 1);

interface Put {
  readonly piece: string;
  readonly isLast: boolean;
}

/** The texts that were put, each made of its pieces. */
function texts(puts: readonly Put[]): string[] {
  const made: string[] = [];
  let open = '';
  for (const { piece, isLast } of puts) {
    open += piece;
    if (!isLast) continue;
    made.push(open);
    open = '';
  }
  assert.equal(open, '', 'the last one is whole');
  return made;
}

test('texts leave whole and in order, however long, and the line is free again behind them', async () => {
  const puts: Put[] = [];
  const line = new TextLine({
    enter: () => Promise.resolve(),
    put: (piece, isLast) => puts.push({ piece, isLast }),
    drained: () => undefined,
  });
  assert.equal(line.isBusy, false);
  const out = [line.add([LONG, '']), line.add(['short'])];
  assert.equal(line.isBusy, true);
  await Promise.all(out);
  assert.ok(puts.length > 4, `${puts.length} pieces`);
  assert.deepEqual(
    texts(puts).map(({ length }) => length),
    [LONG.length, 0, 5],
  );
  assert.equal(line.isBusy, false);
});

test('while one is behind the first, the line is busy, and who comes then stands behind both', async () => {
  const puts: string[] = [];
  const full = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const line = new TextLine({
    enter: () => undefined,
    put: (piece) => puts.push(piece),
    drained: () => full[puts.length - 1]?.promise,
  });
  const first = line.add(['first']);
  const second = line.add(['second']);
  full[0]?.resolve();
  await first;
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(line.isBusy, true);
  const third = line.add(['third']);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(puts, ['first', 'second']);
  full[1]?.resolve();
  await Promise.all([second, third]);
  assert.deepEqual(puts, ['first', 'second', 'third']);
  assert.equal(line.isBusy, false);
});

test('it waits for a reader that is full, and puts nothing more once nobody reads', async () => {
  const puts: string[] = [];
  const full = Promise.withResolvers<void>();
  let isGone = false;
  const line = new TextLine({
    enter() {
      if (isGone) throw new Error('gone');
      return undefined;
    },
    put: (piece) => puts.push(piece),
    drained: () => full.promise,
  });
  const out = line.add([LONG]);
  const behind = line.add(['short']);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(puts.length, 1);
  isGone = true;
  full.resolve();
  await assert.rejects(out, /gone/);
  await assert.rejects(behind, /gone/);
  assert.equal(puts.length, 1);
});
