/**
 * The gateway reads and writes requests in steps; tests and `mizu convert` do the same at once. A codec that is made of another
 * one and replaces only one of the two forms would do nothing in the gateway, or only there.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CLIENTS, UPSTREAMS } from '../../src/codecs/registry.ts';
import { atOnce } from '../../src/codecs/steps.ts';
import { openForTests, ownerOf, targetOf } from '../support/wire.ts';

const QUESTION = [{ role: 'user', content: 'Why?' }];
const REQUESTS = {
  chat: { model: 'm', messages: QUESTION },
  completions: { model: 'm', prompt: 'Why?' },
  responses: { model: 'm', input: QUESTION },
  messages: { model: 'm', max_tokens: 9, messages: QUESTION },
} as const;

for (const client of CLIENTS) {
  test(`a ${client.dialect} request is read, and written for every upstream, in steps as at once`, () => {
    const json = REQUESTS[client.dialect as keyof typeof REQUESTS];
    const context = { open: openForTests };
    const request = client.decodeRequest(JSON.stringify(json), json, context);
    assert.deepEqual(atOnce(client.decodeInSteps(JSON.stringify(json), json, context)), request);
    for (const upstream of UPSTREAMS) {
      const target = targetOf(ownerOf(upstream));
      assert.deepEqual(
        atOnce(upstream.encodeInSteps(request, target)),
        upstream.encodeRequest(request, target),
        upstream.channelType,
      );
    }
  });
}
