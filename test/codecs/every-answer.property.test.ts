/** Laws of answer encoders over the whole space: every feature of the canonical model, in any company, cut and interleaved. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../../src/codecs/canonical/error.ts';
import type { CanonicalEvent } from '../../src/codecs/canonical/event.ts';
import { RESPONSE_FEATURES, type ResponseFeature } from '../../src/codecs/canonical/features.ts';
import { fold, type Whole } from '../../src/codecs/canonical/fold.ts';
import { Order } from '../../src/codecs/canonical/order.ts';
import { type EveryAnswer, everyAnswer, everyEventsOf, featuresOf } from '../support/arbitraries/every-answer.ts';
import { fractions, stepsOf } from '../support/arbitraries/response.ts';
import { DIALECTS } from '../support/dialects.ts';
import { plain, type TwoSided } from '../support/laws.ts';
import { bytesOf, decodeBytes, decodeContext, encodeSteps, ownerOf, responseContext, sseText } from '../support/wire.ts';
import { sized } from '../support/sampled.ts';

const owner = { channelType: 'gemini' as const, scope: 'https://up.example', model: 'up-model' };
const answers = fc.tuple(everyAnswer(owner), fractions, fc.boolean());

/** What the table refuses; a chat message takes one audio, not two. */
function refusedBy({ client }: TwoSided, said: EveryAnswer): boolean {
  const audios = said.items.filter((item) => item.kind === 'media' && item.media.type === 'audio');
  return audios.length > 1 || [...featuresOf(said)].some((feature) => client.losses[feature].does === 'refuse');
}

/** A failed answer has no whole body but in the responses dialect. */
function isOver({ outcome }: Whole): boolean {
  return outcome.status === 'failed' || outcome.status === 'cancelled';
}

function wholeBody({ client }: TwoSided, whole: Whole): string | GatewayError {
  try {
    return client.encodeResponse(whole, undefined, responseContext(client, owner));
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    return error;
  }
}

for (const dialect of DIALECTS) {
  const { client } = dialect;

  test(`any answer to a ${client.dialect} client is refused for what its table refuses, else legal, and the same streamed and whole`, () => {
    fc.assert(
      fc.property(answers, ([said, cuts, interleave]) => {
        const events = everyEventsOf(said, cuts, interleave);
        const whole = fold(events);
        const frames = encodeSteps(client, stepsOf(events), responseContext(client, owner));
        const ending = dialect.check(frames);
        const body = wholeBody(dialect, whole);
        assert.doesNotMatch(sseText(frames), /SECRET/);
        if (refusedBy(dialect, said)) {
          assert.equal(ending, 'failure');
          assert.ok(body instanceof GatewayError && (body.code === 'response_not_representable' || isOver(whole)));
          return;
        }
        assert.equal(ending, isOver(whole) ? 'failure' : 'success');
        if (isOver(whole)) return;
        assert.ok(typeof body === 'string', String(body));
        const context = decodeContext(ownerOf(dialect.upstream));
        const heard = decodeBytes(dialect.upstream, [bytesOf(sseText(frames))], context);
        assert.equal(heard.failure?.message, undefined);
        const compare = (one: Whole): unknown => plain(dialect.comparable?.(one));
        assert.deepEqual(compare(fold(dialect.upstream.decodeResponse(body, context).events)), compare(fold(heard.events)));
      }),
      { numRuns: sized(60, 300) },
    );
  });

  test(`what the pieces of an answer leave unsaid, a ${client.dialect} client hears from its whole items`, () => {
    fc.assert(
      fc.property(answers, fc.nat(), ([said, cuts], kept) => {
        const events = everyEventsOf(said, cuts, false);
        fc.pre(!refusedBy(dialect, said) && !isOver(fold(events)));
        const heard = (some: readonly CanonicalEvent[]): unknown => {
          const frames = encodeSteps(client, stepsOf(some), responseContext(client, owner));
          const decoded = decodeBytes(dialect.upstream, [bytesOf(sseText(frames))]);
          assert.equal(decoded.failure?.message, undefined);
          return plain(dialect.comparable?.(fold(decoded.events)));
        };
        assert.deepEqual(heard(withFewerPieces(events, kept)), heard(events));
      }),
      { numRuns: sized(40, 200) },
    );
  });

  test(`an answer that breaks off behind any event is a failure for a ${client.dialect} client, and legal`, () => {
    fc.assert(
      fc.property(answers, fc.nat(), ([said, cuts, interleave], at) => {
        const events = everyEventsOf(said, cuts, interleave);
        const prefix = events.slice(0, at % events.length);
        assert.equal(dialect.check(encodeSteps(client, stepsOf(prefix), responseContext(client, owner))), 'failure');
      }),
      { numRuns: sized(40, 200) },
    );
  });
}

test('the arbitrary of answers holds every feature, often enough, in legal order', (t) => {
  const counts = new Map<ResponseFeature, number>(RESPONSE_FEATURES.map((feature) => [feature, 0]));
  for (const [said, cuts, interleave] of fc.sample(answers, { numRuns: 2000, seed: 7 })) {
    for (const feature of featuresOf(said)) counts.set(feature, (counts.get(feature) ?? 0) + 1);
    ordered(everyEventsOf(said, cuts, interleave));
  }
  for (const [feature, count] of counts) t.diagnostic(`${String(count).padStart(5)} ${feature}`);
  assert.deepEqual(
    [...counts].filter(([, count]) => count < 20),
    [],
  );
});

/** Of each item the first pieces alone, perhaps none. */
function withFewerPieces(events: readonly CanonicalEvent[], kept: number): CanonicalEvent[] {
  const seen = new Map<number, number>();
  return events.filter((event) => {
    if (event.type !== 'item.delta') return true;
    const count = seen.get(event.index) ?? 0;
    seen.set(event.index, count + 1);
    return count < (kept + event.index) % 3;
  });
}

function ordered(events: readonly CanonicalEvent[]): void {
  const order = new Order();
  for (const step of stepsOf(events)) order.push(step, []);
  order.end();
}
