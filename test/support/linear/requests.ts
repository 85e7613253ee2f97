/** The linearity law over requests: every shape of a client's dialect, read, weighed and written for each upstream. */
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import type { ClientCodec, Target, UpstreamCodec } from '../../../src/codecs/codec.ts';
import { CLIENTS, UPSTREAMS } from '../../../src/codecs/registry.ts';
import { estimateInput } from '../../../src/http/money/estimate.ts';
import { parseJsonBody } from '../../../src/http/request/body.ts';
import { openForTests, ownerOf, targetOf } from '../wire.ts';
import type { Case, Work } from './growth.ts';
import { REQUEST_SHAPES } from './request-shapes.ts';

export const REQUEST_CASES: readonly Case[] = REQUEST_SHAPES.flatMap((shape) =>
  UPSTREAMS.map((upstream): Case => {
    const client = CLIENTS.find(({ dialect }) => dialect === shape.dialect);
    if (client === undefined) throw new Error(`no client speaks ${shape.dialect}`);
    // Whatever a client did not mark is marked for it.
    const target = targetOf(ownerOf(upstream), { options: { cacheBreakpoints: 'auto' } });
    const work = (count: number): Work => {
      const text = JSON.stringify(shape.body(count));
      const bytes = Buffer.from(text);
      return { json: [text], run: () => read(client, bytes, upstream, target) };
    };
    return { name: `${shape.dialect} to ${upstream.dialect}: ${shape.name}`, work };
  }),
);

function read(client: ClientCodec, bytes: Buffer, upstream: UpstreamCodec, target: Target): void {
  try {
    const { text, json } = parseJsonBody(bytes);
    const request = client.decodeRequest(text, json, { open: openForTests, item: knownItem });
    estimateInput(request);
    upstream.encodeRequest(request, target);
  } catch (thrown) {
    // Some bodies cannot be said there; to find that out must be linear, too.
    if (!(thrown instanceof GatewayError && thrown.blame === 'client')) throw thrown;
  }
}

function knownItem(id: string) {
  return id.startsWith('known_')
    ? { type: 'message', id, role: 'assistant', content: [{ type: 'output_text', text: 'x' }] }
    : undefined;
}
