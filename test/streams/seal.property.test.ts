/** Laws of the seal: exactly one ending and a stream that ends well, whatever the source and the encoder do. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { seal } from '../../src/streams/seal.ts';
import { batchSource, collect, settled } from '../support/batches.ts';
import { type Reaction, scripted } from '../support/scripted-stage.ts';

const reaction: fc.Arbitrary<Reaction> = fc.record({
  words: fc.nat({ max: 3 }),
  next: fc.oneof(
    { weight: 6, arbitrary: fc.constant('go on' as const) },
    fc.constant('throw' as const),
    fc.constant('end' as const),
  ),
});
/** The last reaction is for the end of the input: an honest encoder ends or throws there. */
const script = fc
  .tuple(fc.array(reaction, { maxLength: 8 }), fc.constantFrom('throw' as const, 'end' as const))
  .map(([reactions, next]): Reaction[] => [...reactions, { words: 1, next }]);
const batches = fc.array(fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 4 }), { maxLength: 5 });
const isEnding = (word: string): boolean => word.startsWith('s.');

test('exactly one ending, and it is the last word', async () => {
  await fc.assert(
    fc.asyncProperty(batches, script, fc.boolean(), async (input, reactions, dies) => {
      const source = batchSource(input, dies ? new Error('died') : undefined);
      const got = await collect(source.readable.pipeThrough(seal(scripted('s', reactions), String)));
      assert.equal(got.failure, undefined);
      assert.equal(got.values.filter(isEnding).length, 1);
      assert.ok(isEnding(got.values.at(-1) ?? ''));
    }),
  );
});

test('a reader that leaves at any moment cancels the source, and nothing is said or thrown afterwards', async () => {
  await fc.assert(
    fc.asyncProperty(batches, fc.nat({ max: 6 }), fc.nat({ max: 3 }), async (input, reads, pauses) => {
      const source = batchSource([...input, ['a'], ['b']]);
      const stage = scripted('s', []);
      const reader = source.readable.pipeThrough(seal(stage, String)).getReader();
      let open = true;
      for (let i = 0; i < reads && open; i++) open = !(await reader.read()).done;
      for (let i = 0; i < pauses; i++) await settled();
      const atCancel = stage.calls.length;
      await reader.cancel(new Error('left'));
      await settled();
      await settled();
      if (!open || stage.calls.includes('end')) return;
      assert.equal(source.cancelled().length, 1);
      assert.equal(stage.calls.length, atCancel);
    }),
  );
});
