/** An answer that goes from gateway to gateway through all three dialects means at the end what it meant at the start. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Step } from '../../src/codecs/canonical/event.ts';
import { fold, type Whole } from '../../src/codecs/canonical/fold.ts';
import { answer, eventsOf, fractions, stepsOf } from '../support/arbitraries/response.ts';
import { DIALECTS } from '../support/dialects.ts';
import { plain, type TwoSided } from '../support/laws.ts';
import { bytesOf, decodeBytes, encodeSteps, meaning, ownerOf, responseContext, sseText } from '../support/wire.ts';
import { sized } from '../support/sampled.ts';

const owner = { channelType: 'gemini' as const, scope: 'https://up.example', model: 'up-model' };
/** What every dialect says: text, function calls, readable summaries, usage and how it ended. */
const COMMON = { summary: true } as const;

/** The stream of `steps` as a client of `dialect` gets it, read by a gateway behind that client. */
function relay({ client, upstream }: TwoSided, steps: readonly Step[]): readonly Step[] {
  const frames = encodeSteps(client, steps, responseContext(client, owner));
  const heard = decodeBytes(upstream, [bytesOf(sseText(frames))], { owner: ownerOf(upstream) });
  assert.equal(heard.failure?.message, undefined);
  // The next gateway speaks another dialect: only the canonical reading goes on.
  return heard.steps.map(({ events }) => ({ events }));
}

/** Texts and summaries without the empty lines between their parts, which are each dialect's own (loss tables). */
function common(whole: Whole): unknown {
  const items = whole.items.map(({ item }) => item);
  const { usage, outcome } = meaning(whole) as { usage: unknown; outcome: unknown };
  const joined = (texts: readonly string[]): string => texts.join('').replaceAll('\n', '');
  return plain({
    text: joined(items.flatMap((item) => (item.kind === 'text' ? [item.text] : []))),
    summary: joined(items.flatMap((item) => (item.kind === 'reasoning' ? (item.summary ?? []) : []))),
    calls: items.flatMap((item) => (item.kind === 'toolCall' ? [[item.callId, item.tool.name, item.input]] : [])),
    usage,
    outcome,
  });
}

for (const first of DIALECTS) {
  for (const second of DIALECTS) {
    for (const third of DIALECTS) {
      if (new Set([first, second, third]).size < 3) continue;
      const cycle = [first, second, third, first];
      test(`${cycle.map(({ client }) => client.dialect).join(' → ')}: an answer means the same after every conversion`, () => {
        fc.assert(
          fc.property(answer(COMMON, owner), fractions, fc.boolean(), (said, cuts, interleave) => {
            const start = eventsOf(said, cuts, interleave);
            let steps: readonly Step[] = stepsOf(start);
            for (const dialect of cycle) steps = relay(dialect, steps);
            assert.deepEqual(common(fold(steps.flatMap(({ events }) => events))), common(fold(start)));
          }),
          { numRuns: sized(12, 60) },
        );
      });
    }
  }
}
