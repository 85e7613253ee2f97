/** Laws about whole pipelines: same dialect on both sides (law 6), and how stages are wired (law 12). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Order } from '../../src/codecs/canonical/order.ts';
import { chain, chainSealed } from '../../src/streams/chain.ts';
import { seal } from '../../src/streams/seal.ts';
import { sseDecode } from '../../src/streams/sse-decode.ts';
import { toTransform } from '../../src/streams/to-transform.ts';
import { answer, fractions } from './arbitraries/response.ts';
import { batchSource, collect } from './batches.ts';
import { damaged, type TwoSided, type UpstreamSide } from './laws.ts';
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

/** Law 12: fused, piped and batched anywhere, the client reads the same bytes. */
export function lawWiringDoesNotMatter(upstream: UpstreamSide, client: TwoSided): void {
  const dialects = `${upstream.upstream.dialect} upstream, ${client.client.dialect} client`;
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
            sse: sseDecode({ maxEventBytes: 1 << 20 }),
            decoder: upstream.upstream.decodeEvents(decodeContext(owner, { request, mint })),
            order: new Order(),
            encoder: client.client.encodeEvents(responseContext(client.client, owner, { request })),
          };
        };
        const one = stages();
        const piped = await collect(
          source()
            .pipeThrough(toTransform(one.sse))
            .pipeThrough(toTransform(one.decoder))
            .pipeThrough(toTransform(one.order))
            .pipeThrough(seal(one.encoder, toFailure)),
        );
        const two = stages();
        const fused = await collect(
          source().pipeThrough(seal(chainSealed(chain(chain(two.sse, two.decoder), two.order), two.encoder), toFailure)),
        );
        assert.equal(sseText(fused.values), sseText(piped.values));
        const three = stages();
        const alone = await collect(
          batchSource([[bytes]]).readable.pipeThrough(
            seal(chainSealed(three.sse, chainSealed(chain(three.decoder, three.order), three.encoder)), toFailure),
          ),
        );
        assert.equal(sseText(alone.values), sseText(piped.values));
      }),
      { numRuns: 60 },
    );
  });
}
