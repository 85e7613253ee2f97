/** Law: fused and piped say the same, whatever the stages do and wherever the input is cut into batches. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { chain, chainSealed } from '../../src/streams/chain.ts';
import { seal } from '../../src/streams/seal.ts';
import { toTransform } from '../../src/streams/to-transform.ts';
import { batchSource, collect } from '../support/batches.ts';
import { type Reaction, scripted } from '../support/scripted-stage.ts';

const reaction: fc.Arbitrary<Reaction> = fc.record({
  words: fc.nat({ max: 3 }),
  // Most inputs go on.
  next: fc.oneof(
    { weight: 8, arbitrary: fc.constant('go on' as const) },
    fc.constant('throw' as const),
    fc.constant('end' as const),
  ),
});
const script = fc.array(reaction, { maxLength: 8 });
const batches = fc.array(fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 4 }), { maxLength: 5 });
const failure = fc.option(fc.constant('upstream died'), { nil: undefined });
const message = (reason: unknown): string => (reason instanceof Error ? reason.message : String(reason));

test('chain = pipe, for plain stages', async () => {
  await fc.assert(
    fc.asyncProperty(batches, failure, script, script, async (input, died, one, two) => {
      const source = () => batchSource(input, died === undefined ? undefined : new Error(died)).readable;
      const piped = await collect(
        source()
          .pipeThrough(toTransform(scripted('1', one)))
          .pipeThrough(toTransform(scripted('2', two))),
      );
      const fused = await collect(source().pipeThrough(toTransform(chain(scripted('1', one), scripted('2', two)))));
      assert.deepEqual(fused.values, piped.values);
      assert.equal(message(fused.failure), message(piped.failure));
    }),
  );
});

test('chainSealed = pipe into seal, three stages fused in either order', async () => {
  await fc.assert(
    fc.asyncProperty(batches, failure, script, script, script, async (input, died, one, two, three) => {
      const source = () => batchSource(input, died === undefined ? undefined : new Error(died)).readable;
      const [first, second, third] = [() => scripted('1', one), () => scripted('2', two), () => scripted('3', three)];
      const piped = await collect(
        source().pipeThrough(toTransform(first())).pipeThrough(toTransform(second())).pipeThrough(seal(third(), message)),
      );
      const fused = [
        seal(chainSealed(first(), chainSealed(second(), third())), message),
        seal(chainSealed(chain(first(), second()), third()), message),
      ];
      assert.equal(piped.failure, undefined);
      for (const stage of fused) assert.deepEqual((await collect(source().pipeThrough(stage))).values, piped.values);
      const half = source()
        .pipeThrough(toTransform(first()))
        .pipeThrough(seal(chainSealed(second(), third()), message));
      assert.deepEqual((await collect(half)).values, piped.values);
    }),
  );
});

test('how the input is batched does not matter', async () => {
  await fc.assert(
    fc.asyncProperty(batches, script, script, async (input, one, two) => {
      const run = (given: readonly (readonly string[])[]) =>
        collect(
          batchSource(given)
            .readable.pipeThrough(toTransform(scripted('1', one)))
            .pipeThrough(seal(scripted('2', two), message)),
        );
      const singles = await run(input.flat().map((value) => [value]));
      assert.deepEqual((await run(input)).values, singles.values);
      assert.deepEqual((await run([input.flat()])).values, singles.values);
    }),
  );
});
