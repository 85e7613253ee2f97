/**
 * A gateway in front of a gateway changes nothing where both speak the protocol of the client, or that of the upstream: the
 * upstream receives the same request, and the client reads the same answer.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from 'fast-check';
import type { ChannelType } from '../../src/codecs/canonical/dialect.ts';
import { talk, WRITERS } from '../support/arbitraries/request.ts';
import { answer, fractions } from '../support/arbitraries/response.ts';
import { DIALECTS, UPSTREAMS } from '../support/dialects.ts';
import { fakeUpstream, openStream } from '../support/fake-upstream.ts';
import { KEY, type TestGateway, testGateway } from '../support/test-gateway.ts';
import { ownerOf } from '../support/wire.ts';

const PRICE = { price: { input: '1', output: '2' } };
const PATHS = { chat: '/v1/chat/completions', responses: '/v1/responses', messages: '/v1/messages' } as const;

let reply = '';
const upstream = await fakeUpstream(({ socket }) => {
  const stream = openStream(socket);
  stream.raw(reply);
  stream.end();
});
/** One Channel of each type, all at one place. */
const gatewayTo = (url: string, types: readonly ChannelType[], models: readonly string[], key: string) =>
  testGateway({
    channels: types.map((type) => ({
      id: type,
      type,
      base_url: url,
      api_key: key,
      models: Object.fromEntries(models.map((model) => [`${type} ${model}`.trim(), model === '' ? 'up-model' : model])),
    })),
    models: Object.fromEntries(types.flatMap((type) => models.map((model) => [`${type} ${model}`.trim(), PRICE]))),
  });
const types = UPSTREAMS.map((side) => side.upstream.channelType);
const near = await gatewayTo(upstream.url, types, [''], 'sk-up');
const far = await gatewayTo(near.url, ['chat_completion', 'responses', 'messages'], types, KEY);
// Two gateways have two secrets: here an account of its own keeps their envelopes apart.
far.store.addKey(KEY, {}, { id: 'acct_2' });
for (const { store } of [near, far]) store.walletNanos = 10n ** 15n;
after(async () => {
  await far[Symbol.asyncDispose]();
  await near[Symbol.asyncDispose]();
  await upstream.close();
});

/** The answer without what is each gateway's own: ids, times, names of models, envelopes. */
function plain(text: string): string {
  const ids = new Map<string, string>();
  return text
    .replace(/"(resp_mizu_|chatcmpl-|[a-z]{2,4}_)[0-9a-f]{32}"/g, (id, prefix: string) => {
      if (!ids.has(id)) ids.set(id, `"${prefix}${ids.size}"`);
      return ids.get(id) ?? id;
    })
    .replace(/mz2\.[\w-]+/g, 'envelope')
    .replace(/"(created|created_at|completed_at)":\d+/g, '"$1":0')
    .replace(/"model":"[^"]*"/g, '"model":"m"');
}

interface Exchange {
  readonly received: readonly unknown[];
  readonly answer: string;
}

async function exchange(gateway: TestGateway, path: string, body: object): Promise<Exchange> {
  upstream.requests.length = 0;
  const response = await gateway.post(path, body);
  const text = await response.text();
  const received = upstream.requests.map((request): unknown => [request.path, JSON.parse(request.body)]);
  return { received, answer: `${response.status} ${plain(text)}` };
}

for (const { client } of DIALECTS) {
  for (const side of UPSTREAMS) {
    const { dialect, channelType } = side.upstream;
    // Gateways ask for usage in any case: then every chunk of a stream has the member.
    const more = client.dialect === 'chat' ? { stream_options: { include_usage: true } } : {};
    const between = [...new Set([client.dialect, dialect])].filter((one) => one !== 'gemini');
    test(`${client.dialect} over ${dialect}: a gateway between changes nothing`, async () => {
      // Pictures are refused to messages clients: a failure of the near gateway, for which the far one would pass it over.
      const features = client.dialect === 'messages' ? { ...side.features, images: false } : side.features;
      const said = fc.tuple(talk, answer(features, ownerOf(side.upstream)), fractions, fc.boolean());
      await fc.assert(
        fc.asyncProperty(said, async ([asked, answered, cuts, interleave]) => {
          reply = new TextDecoder().decode(side.write(answered, cuts, interleave));
          const path = PATHS[client.dialect as keyof typeof PATHS];
          const body = WRITERS[client.dialect as keyof typeof WRITERS]({ ...asked, stream: true });
          Object.assign(body, more);
          const direct = await exchange(near, path, { ...body, model: channelType });
          for (const name of between) {
            const type = name === 'chat' ? 'chat_completion' : name;
            const chained = await exchange(far, path, { ...body, model: `${type} ${channelType}` });
            assert.deepEqual(chained.received, direct.received, `the request through ${name}`);
            assert.equal(chained.answer, direct.answer, `the answer through ${name}`);
          }
        }),
        { numRuns: 4 },
      );
    });
  }
}
