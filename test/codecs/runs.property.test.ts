/**
 * Law: whether pieces come in one read, and so as a run (`codecs/answers/runs.ts`), or each in a read of its own makes no
 * difference to what a client gets, nor to what is folded. `cases.test.ts` holds the recorded streams to it, at every cut.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { CanonicalEvent, Step } from '../../src/codecs/canonical/event.ts';
import type { ClientCodec, Frame, OutFrame } from '../../src/codecs/codec.ts';
import { completionsClient } from '../../src/codecs/completions/index.ts';
import { readAnswer, writeAnswer } from '../../src/codecs/pipeline.ts';
import { answer } from '../support/arbitraries/response.ts';
import { DIALECTS, UPSTREAMS } from '../support/dialects.ts';
import { nameOf, type UpstreamSide } from '../support/laws.ts';
import { singleEvents, singleFrames } from '../support/runs.ts';
import { sized } from '../support/sampled.ts';
import {
  countingMint,
  cutBytes,
  decodeContext,
  ownerOf,
  requestOf,
  responseContext,
  sseText,
  toFailure,
} from '../support/wire.ts';

const CLIENTS = [...DIALECTS.map(({ client }) => client), completionsClient];
const MAX_EVENT_BYTES = 1 << 20;

interface Said {
  readonly events: readonly CanonicalEvent[];
  readonly frames: readonly Frame[];
  readonly text: string;
  readonly folded: unknown;
}

/** What a client gets of these reads, and the longest run in it. `mayWait`: read as the gateway reads them. */
function said(side: UpstreamSide, client: ClientCodec, reads: readonly Uint8Array[], mayWait: boolean): [Said, number] {
  const owner = ownerOf(side.upstream);
  const request = requestOf(client.dialect);
  const decoder = side.upstream.decodeEvents(decodeContext(owner, { request, mint: countingMint() }));
  const { steps: stage, fold } = readAnswer(decoder, MAX_EVENT_BYTES, undefined, side.framing, mayWait);
  const writer = writeAnswer(client.encodeEvents(responseContext(client, owner, { request })), toFailure);
  const steps: Step[] = [];
  const frames: OutFrame[] = [];
  const pass = (read: (out: Step[]) => void): void => {
    const out: Step[] = [];
    try {
      read(out);
    } finally {
      writer.push(out, frames);
      steps.push(...out);
    }
  };
  // A client that refuses the answer ends it, and the rest is read all the same.
  try {
    for (const bytes of reads) if (!stage.ended) pass((out) => stage.push(bytes, out));
    if (!stage.ended) pass((out) => stage.end(out));
  } catch (thrown) {
    writer.abort(thrown, frames);
  }
  const events = steps.flatMap((step) => step.events);
  const folded = [fold.whole({ status: 'completed', stop: 'end' }), fold.isUsageEarly];
  const runs = events.map((event) => (event.type === 'item.delta' && 'pieces' in event.delta ? event.delta.pieces.length : 1));
  return [{ events: singleEvents(events), frames: singleFrames(frames), text: sseText(frames), folded }, Math.max(1, ...runs)];
}

const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 40 });

for (const side of UPSTREAMS) {
  for (const client of CLIENTS) {
    test(`runs and single events say the same, ${nameOf(side)} upstream, ${client.dialect} client`, () => {
      const owner = ownerOf(side.upstream);
      fc.assert(
        fc.property(answer(side.features, owner), cuts, cuts, fc.boolean(), (whole, pieces, reads, mayWait) => {
          const bytes = side.write(whole, pieces, true);
          const [together] = said(side, client, [bytes], mayWait);
          const alone = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
          const [single, longest] = said(side, client, alone, mayWait);
          assert.equal(longest, 1, 'a read of one byte brings no run');
          assert.deepEqual(together, single);
          assert.deepEqual(said(side, client, cutBytes(bytes, reads), mayWait)[0], single);
        }),
        { numRuns: sized(12, 30) },
      );
    });
  }
}

test('texts, reasoning and arguments that come in one read are runs for clients of other dialects', () => {
  const items = [
    { kind: 'reasoning', raw: 'so it thinks of this and that' },
    { kind: 'text', role: 'assistant', text: 'and says what it has thought', citations: [] },
  ] as const;
  const whole = { items, usage: undefined, outcome: { status: 'completed', stop: 'end' } } as const;
  const often = Array.from({ length: 20 }, (_, at) => at / 20);
  for (const side of UPSTREAMS.filter(({ upstream }) => upstream.dialect !== 'gemini'))
    for (const client of CLIENTS) {
      const [, longest] = said(side, client, [side.write(whole, often, false)], true);
      if (client.dialect === side.upstream.dialect) assert.equal(longest, 1, client.dialect);
      else assert.ok(longest > 10, `${nameOf(side)} to ${client.dialect}: ${longest}`);
    }
});
