/** Laws about whole pipelines: same dialect on both sides (law 6), and how stages are wired (law 12). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { answer, fractions } from './arbitraries/response.ts';
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
} from './wire.ts';
import { pipedInBatches, pumped } from './wiring.ts';
import { sized } from './sampled.ts';

/**
 * Law 6: with the same dialect on both sides only the response id, the model and sealed values differ; nothing was sealed here.
 */
export function lawSameDialectIsLossless(dialect: TwoSided): void {
  test(`law 6: ${dialect.client.dialect} to ${dialect.client.dialect} changes no byte but the gateway's members`, () => {
    fc.assert(
      fc.property(answer(dialect.features, ownerOf(dialect.upstream)), fractions, unknownMember, (said, cuts, extra) => {
        const sent = Buffer.from(dialect.write(said, cuts, false))
          .toString()
          .replaceAll(/^data: \{(?=")/gm, `data: {${extra},`);
        const decoded = decodeBytes(dialect.upstream, [Buffer.from(sent)], { request: requestOf(dialect.client.dialect) });
        assert.equal(decoded.failure, undefined);
        const context = responseContext(dialect.client, ownerOf(dialect.upstream), { seal: (opaque) => opaque.value });
        const received = sseText(encodeSteps(dialect.client, decoded.steps, context));
        assert.equal(received, sent.replaceAll('"model":"up-model"', '"model":"logical-model"'));
      }),
      { numRuns: sized(25, 100) },
    );
  });
}

/** A member that nobody knows, in spellings that a re-serialisation would change. */
const unknownMember = fc.constantFrom('"x_new":1.0', '"x_new" : [1e2, {"b":1,"10":2,"2":3}]', '"x_new":"\\u00e9\\/"');

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
        const inBatches = [0, ...at].map((from, index) => pieces.slice(from, at[index] ?? pieces.length));
        const stages = () => {
          const mint = countingMint();
          const request = requestOf(client.client.dialect, { logprobs: { top: 20 } });
          const owner = ownerOf(upstream.upstream);
          return {
            decoder: upstream.upstream.decodeEvents(decodeContext(owner, { request, mint })),
            encoder: client.client.encodeEvents(responseContext(client.client, owner, { request })),
            framing: upstream.framing,
          };
        };
        const text = sseText(await pipedInBatches(inBatches, stages()));
        assert.equal(sseText(pumped(pieces, stages())), text);
        assert.equal(sseText(pumped([bytes], stages())), text);
      }),
      { numRuns: sized(12, 60) },
    );
  });
}
