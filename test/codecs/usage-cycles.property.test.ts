/** What an answer used is the same for a gateway that reads it from another one: both bill the same. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { CanonicalEvent } from '../../src/codecs/canonical/event.ts';
import { fold } from '../../src/codecs/canonical/fold.ts';
import type { Usage } from '../../src/codecs/canonical/usage.ts';
import { eventsOf, stepsOf } from '../support/arbitraries/response.ts';
import { DIALECTS } from '../support/dialects.ts';
import {
  bytesOf,
  decodeBytes,
  decodeContext,
  encodeSteps,
  ownerOf,
  requestOf,
  responseContext,
  sseText,
} from '../support/wire.ts';
import { sized } from '../support/sampled.ts';

const count = fc.integer({ min: 1, max: 5000 });
const maybe = fc.option(count, { nil: undefined });

/** `media`: what of the tokens was no text, which messages cannot say. */
function usageOf(media: boolean): fc.Arbitrary<Usage> {
  const share = media ? maybe : fc.constant(undefined);
  return fc
    .record({ text: count, said: count, reasoning: maybe, cacheRead: maybe, lifetimes: fc.boolean(), short: maybe, long: maybe })
    .chain(({ text, said, reasoning, cacheRead, lifetimes, short, long }) =>
      fc
        .record({ image: share, audio: share, drawn: share, spoken: share, searches: fc.option(fc.integer({ min: 1, max: 9 })) })
        .map(({ image, audio, drawn, spoken, searches }): Usage => {
          const written = lifetimes ? { cacheWrite5m: short ?? 0, cacheWrite1h: long ?? 0 } : { cacheWrite: short ?? 0 };
          return plain({
            input: text + (image ?? 0) + (audio ?? 0),
            cacheRead,
            ...written,
            output: said + (reasoning ?? 0) + (drawn ?? 0) + (spoken ?? 0),
            reasoning,
            imageInput: image,
            audioInput: audio,
            imageOutput: drawn,
            audioOutput: spoken,
            meters: searches === null ? undefined : new Map([['web_search', searches]]),
          });
        }),
    );
}

/** Nothing and zero cost the same. */
function plain(usage: { readonly [K in keyof Usage]?: Usage[K] | undefined }): Usage {
  const entries = Object.entries(usage).filter(([, value]) => value !== undefined && value !== 0);
  return Object.fromEntries(entries) as Usage;
}

function billed(events: readonly CanonicalEvent[]): Usage {
  const { usage = {} } = fold(events);
  const { native: _native, serviceTier: _tier, meters, ...counters } = usage;
  return plain({ ...counters, meters: meters?.size === 0 ? undefined : meters });
}

for (const { client, upstream } of DIALECTS) {
  test(`${client.dialect}: a report of usage that is said again is the same, in a stream and in a whole answer`, () => {
    fc.assert(
      fc.property(usageOf(client.dialect !== 'messages'), (usage) => {
        const said = { kind: 'text', role: 'assistant', text: 'Hi', citations: [] } as const;
        const events = eventsOf({ items: [said], usage, outcome: { status: 'completed', stop: 'end' } }, []);
        const owner = { channelType: 'gemini', scope: 'https://up.example', model: 'up-model' } as const;
        const context = () => responseContext(client, owner, { request: requestOf(client.dialect, { includeUsage: true }) });
        const stream = bytesOf(sseText(encodeSteps(client, stepsOf(events), context())));
        assert.deepEqual(billed(decodeBytes(upstream, [stream]).events), plain(usage));
        const body = client.encodeResponse(fold(events), undefined, context());
        const whole = upstream.decodeResponse(body, decodeContext(ownerOf(upstream))).events;
        assert.deepEqual(billed(whole), plain(usage));
      }),
      { numRuns: sized(40, 200) },
    );
  });
}
