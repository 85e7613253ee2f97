/**
 * The envelope secret is rotated by another process while the gateway serves: conversations that began before go on with their
 * reasoning, what is sealed from then on is sealed with the new secret, and both kinds open side by side.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonValue } from '../../src/codecs/canonical/json.ts';
import { cause } from '../store/support/store.ts';
import { eachStore, openPlace } from '../store/support/stores.ts';
import { moneyGateway } from '../support/money-gateway.ts';
import { eventually } from '../support/test-gateway.ts';

/** An answer with reasoning, and the conversation that goes on behind it. */
const CLIENTS = {
  messages: {
    path: '/v1/messages',
    ask: (turns: readonly JsonValue[]) => ({ model: 'messages', max_tokens: 500, messages: turns }),
    turnsOf: ({ content }: { readonly content: JsonValue[] }) => [{ role: 'assistant', content }],
  },
  responses: {
    path: '/v1/responses',
    ask: (turns: readonly JsonValue[]) => ({
      ...{ model: 'responses', store: false, include: ['reasoning.encrypted_content'], input: turns },
    }),
    turnsOf: ({ output }: { readonly output: JsonValue[] }) => output,
  },
};

/** The number of the secret that an envelope names in its second byte. */
const secretOf = (envelope: string): number => Buffer.from(envelope.slice('mz2.'.length), 'base64url')[1] ?? 0;
const envelopesIn = (value: unknown): string[] => JSON.stringify(value).match(/mz2\.[\w-]+/g) ?? [];

eachStore(({ makePlace, dropPlace }) => {
  for (const [name, { path, ask, turnsOf }] of Object.entries(CLIENTS))
    test(`envelopes of before and after a rotation both open: ${name}`, async (t) => {
      const folder = await makePlace();
      const gateway = await moneyGateway(t, {}, await openPlace(folder));
      t.after(() => dropPlace(folder));
      const owner = await gateway.owner(10n ** 12n);
      const turns: JsonValue[] = [];
      const seals: string[] = [];
      const say = async (text: string): Promise<string[]> => {
        turns.push({ role: 'user', content: text });
        const pieces = [
          { type: 'reasoning' as const, summary: [`about ${text}`], opaque: true as const },
          { type: 'text' as const, text: `yes, ${text}` },
        ];
        gateway.simulator.enqueue({ reply: { pieces } });
        const answer = await gateway.post(owner, path, ask(turns));
        const body = JSON.parse(await answer.text());
        assert.equal(answer.status, 200, JSON.stringify(body));
        const asked = gateway.simulator.requests.at(-1)?.text ?? '';
        assert.doesNotMatch(asked, /mz2\./, 'the upstream gets its own values');
        const opened = asked.match(/"(?:signature|encrypted_content)":"([^"]+)"/g) ?? [];
        assert.equal(opened.length, seals.length, 'and all of them');
        const sealed = envelopesIn(body);
        assert.equal(sealed.length, 1);
        seals.push(...sealed);
        turns.push(...turnsOf(body));
        return sealed;
      };
      const before = await say('one');
      const other = await openPlace(folder);
      const { id } = await other.secrets.rotate(cause());
      await other.close();
      await eventually(() => gateway.store.secrets.current().id === id, 'the gateway learns of it');
      const after = await say('two');
      assert.deepEqual([...before, ...after].map(secretOf), [id - 1, id]);
      await say('three');
      assert.deepEqual(envelopesIn(turns).map(secretOf), [id - 1, id, id]);
    });
});
