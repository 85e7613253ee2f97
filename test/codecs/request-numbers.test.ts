/**
 * Numbers that JSON can spell and JavaScript cannot hold: refused where they would reach an upstream as another value in silence.
 * Numbers that a vendor takes none of: judged by that vendor where the dialect stays.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isObject } from '../../src/codecs/canonical/json.ts';
import { CLIENTS, UPSTREAMS } from '../../src/codecs/registry.ts';
import { openForTests, ownerOf, targetOf } from '../support/wire.ts';

const PROMPTS: Readonly<Record<string, string>> = {
  chat: '"messages":[{"role":"user","content":"hi"}]',
  completions: '"prompt":"hi"',
  responses: '"input":"hi"',
  messages: '"max_tokens":9,"messages":[{"role":"user","content":"hi"}]',
};

const decoded = (client: (typeof CLIENTS)[number], member: string) => {
  const text = `{"model":"m",${PROMPTS[client.dialect]},${member}}`;
  const json: unknown = JSON.parse(text);
  if (!isObject(json)) throw new Error('no object');
  return client.decodeRequest(text, json, { open: openForTests });
};

for (const client of CLIENTS) {
  for (const member of ['"temperature":1e400', '"top_p":-1e400']) {
    test(`${client.dialect}: ${member} is no number`, () => {
      assert.throws(() => decoded(client, member), { code: 'invalid_request' });
    });
  }
}

for (const client of CLIENTS.filter(({ dialect }) => dialect === 'chat' || dialect === 'completions')) {
  test(`${client.dialect}: a seed may have 64 bits, as its protocol says`, () => {
    for (const seed of ['9007199254740993', '-9223372036854775808', '9223372036854775807']) {
      assert.equal(decoded(client, `"seed":${seed}`).seed, Number(seed));
    }
    for (const seed of ['1e300', '0.5', '"7"'])
      assert.throws(() => decoded(client, `"seed":${seed}`), { code: 'invalid_request' });
  });
}

test('chat: a seed reaches an upstream of the same protocol in its own spelling', () => {
  const [chat] = CLIENTS;
  const upstream = UPSTREAMS.find(({ dialect }) => dialect === 'chat');
  assert.ok(chat !== undefined && upstream !== undefined);
  const request = decoded(chat, '"seed":9007199254740993');
  assert.match(upstream.encodeRequest(request, targetOf(ownerOf(upstream))).body, /"seed":9007199254740993/);
});

for (const client of CLIENTS) {
  const upstream = UPSTREAMS.find(({ dialect }) => dialect === client.dialect);
  if (upstream === undefined) continue;
  for (const member of ['"temperature":-5.0', '"temperature":1e3', '"top_p":7', '"presence_penalty":-99', '"top_k":-1']) {
    test(`${client.dialect} to ${client.dialect}: ${member} is forwarded as it is spelled, for the vendor to judge`, () => {
      const { body, losses } = upstream.encodeRequest(decoded(client, member), targetOf(ownerOf(upstream)));
      assert.ok(body.includes(member), body);
      assert.deepEqual(losses, []);
    });
  }
}
