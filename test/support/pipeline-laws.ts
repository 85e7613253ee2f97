/** Laws about whole pipelines: same dialect on both sides (law 6), and how stages are wired (law 12). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Step } from '../../src/codecs/canonical/event.ts';
import type { ClientEncoder, EventDecoder, Frame } from '../../src/codecs/codec.ts';
import { type Framing, pipeAnswer, pipeFrames, readAnswer, writeAnswer } from '../../src/codecs/pipeline.ts';
import { answer, fractions } from './arbitraries/response.ts';
import { batchSource, collect } from './batches.ts';
import { damaged, nameOf, type TwoSided, type UpstreamSide } from './laws.ts';
import {
  countingMint,
  cutBytes,
  decodeBytes,
  decodeContext,
  encodeSteps,
  ownerOf,
  requestOf,
  responseContext,
  sseText,
  toFailure,
} from './wire.ts';

/** Law 6: with the same dialect on both sides only the response id, the model and sealed values differ; nothing was sealed here. */
export function lawSameDialectIsLossless(dialect: TwoSided): void {
  test(`law 6: ${dialect.client.dialect} to ${dialect.client.dialect} changes no byte but the gateway's members`, () => {
    fc.assert(
      fc.property(answer(dialect.features, ownerOf(dialect.upstream)), fractions, unknownMember, (said, cuts, extra) => {
        const sent = Buffer.from(dialect.write(said, cuts, false))
          .toString()
          .replaceAll(/^data: \{(?=")/gm, `data: {${extra},`);
        const decoded = decodeBytes(dialect.upstream, [Buffer.from(sent)]);
        assert.equal(decoded.failure, undefined);
        const context = responseContext(dialect.client, ownerOf(dialect.upstream), { seal: (opaque) => opaque.value });
        const received = sseText(encodeSteps(dialect.client, decoded.steps, context));
        assert.equal(received, sent.replaceAll('"model":"up-model"', '"model":"logical-model"'));
      }),
      { numRuns: 100 },
    );
  });
}

/** A member that nobody knows, in spellings that a re-serialisation would change. */
const unknownMember = fc.constantFrom('"x_new":1.0', '"x_new" : [1e2, {"b":1,"10":2,"2":3}]', '"x_new":"\\u00e9\\/"');

const MAX_EVENT_BYTES = 1 << 20;

/** The frames that the gateway writes for these reads: each read is decoded, ordered and encoded in one go. */
function pumped(
  reads: readonly Uint8Array[],
  { decoder, encoder }: { decoder: EventDecoder; encoder: ClientEncoder },
  framing?: Framing,
): Frame[] {
  const { steps } = readAnswer(decoder, MAX_EVENT_BYTES, framing);
  const writer = writeAnswer(encoder, toFailure);
  const frames: Frame[] = [];
  const pass = (read: (out: Step[]) => void): void => {
    const out: Step[] = [];
    try {
      read(out);
    } catch (thrown) {
      writer.push(out, frames);
      writer.abort(thrown, frames);
      return;
    }
    writer.push(out, frames);
  };
  for (const bytes of reads) if (!writer.over && !steps.ended) pass((out) => steps.push(bytes, out));
  if (!writer.over && !steps.ended) pass((out) => steps.end(out));
  if (!writer.over) writer.end(frames);
  return frames;
}

/** Law 12: fused, piped and batched anywhere, the client reads the same bytes. */
export function lawWiringDoesNotMatter(upstream: UpstreamSide, client: TwoSided): void {
  const dialects = `${nameOf(upstream)} upstream, ${client.client.dialect} client`;
  test(`law 12: fused, piped and batched anywhere: the same bytes, ${dialects}`, async () => {
    const valid = fc
      .tuple(answer(upstream.features, ownerOf(upstream.upstream)), fractions)
      .map(([said, cuts]) => upstream.write(said, cuts, true));
    await fc.assert(
      fc.asyncProperty(fc.oneof(valid, damaged(upstream)), fractions, fractions, async (bytes, cuts, batches) => {
        const pieces = cutBytes(bytes, cuts);
        const at = batches.map((fraction) => Math.floor(fraction * pieces.length)).sort((a, b) => a - b);
        const source = () =>
          batchSource([0, ...at].map((from, index) => pieces.slice(from, at[index] ?? pieces.length))).readable;
        const stages = () => {
          const mint = countingMint();
          const request = requestOf(client.client.dialect, { logprobs: { top: 20 } });
          const owner = ownerOf(upstream.upstream);
          return {
            decoder: upstream.upstream.decodeEvents(decodeContext(owner, { request, mint })),
            encoder: client.client.encodeEvents(responseContext(client.client, owner, { request })),
          };
        };
        const one = stages();
        const { steps } = pipeAnswer(source(), one.decoder, MAX_EVENT_BYTES, upstream.framing);
        const piped = await collect(pipeFrames(steps, one.encoder, toFailure));
        assert.equal(sseText(pumped(pieces, stages(), upstream.framing)), sseText(piped.values));
        assert.equal(sseText(pumped([bytes], stages(), upstream.framing)), sseText(piped.values));
      }),
      { numRuns: 60 },
    );
  });
}
