/**
 * Every recorded answer behind the doors of the clouds, over sockets: each client reads what it reads of the vendor's own door.
 * Needs MIZU_FIXTURES. `npm test` draws some, by its seed; `MIZU_FORMS=all` takes every one.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import type { RawAnswer } from '../../../src/simulator/script.ts';
import type { Simulator } from '../../../src/simulator/simulator.ts';
import { answersOf, type Recording, recordedStatus, recordings, skipWithoutFixtures } from '../../support/fixtures.ts';
import { CLIENTS } from '../../support/money-gateway.ts';
import { type TestGateway, testGateway } from '../../support/test-gateway.ts';
import { formsConfig, HOSTED_FORMS, PLAIN_FORMS, startVendors, type UpstreamForm } from '../../support/upstream-forms.ts';

const TYPES: Readonly<Record<string, string>> = { chat: 'chat_completion' };
const typeOf = ({ dialect }: Recording): string => TYPES[dialect] ?? dialect;

let simulator: Simulator;
let gateway: TestGateway;

before(async () => {
  simulator = await startVendors();
  gateway = await testGateway(formsConfig([...PLAIN_FORMS, ...HOSTED_FORMS], simulator.url));
  gateway.store.walletNanos = 10n ** 18n;
});
after(async () => {
  await gateway[Symbol.asyncDispose]();
  await simulator.close();
});

/** What a client reads, without what is each answer's own: ids, times, envelopes, and the name of the model that it asked for. */
function plain(text: string, model: string): string {
  const ids = new Map<string, string>();
  return text
    .replace(/\b(resp_mizu_|chatcmpl-|[a-z]{2,6}_)[0-9a-f]{24,32}\b/g, (id, prefix: string) => {
      if (!ids.has(id)) ids.set(id, `${prefix}${ids.size}`);
      return ids.get(id) ?? id;
    })
    .replace(/mz2\.[\w-]+/g, 'envelope')
    .replace(/"(created|created_at|completed_at)": ?\d+/g, '"$1":0')
    .replaceAll(JSON.stringify(model), '"m"');
}

async function heard(form: string, client: keyof typeof CLIENTS, raw: RawAnswer, stream: boolean): Promise<string> {
  simulator.reset();
  // Twice: after a 401 a cloud is asked once more, with another token.
  simulator.enqueue({ raw, times: 2 });
  gateway.running.gateway.dispatcher.health.keepOnly(new Set());
  const { path, ask } = CLIENTS[client];
  const answer = await gateway.post(path, ask(form, stream));
  return `${answer.status} ${plain(await answer.text(), form)}`;
}

async function sameBehind(form: UpstreamForm, raw: RawAnswer, stream: boolean): Promise<void> {
  for (const client of ['chat', 'responses', 'messages'] as const)
    assert.equal(
      await heard(form.name, client, raw, stream),
      await heard(form.type, client, raw, stream),
      `${client} over ${form.name}`,
    );
}

const SAMPLE = 24;

/** All of them, or those that the seed draws. */
function drawn(): readonly Recording[] {
  const all = recordings().filter(({ dialect }) => HOSTED_FORMS.some(({ type }) => type === (TYPES[dialect] ?? dialect)));
  if (process.env['MIZU_FORMS'] === 'all') return all;
  const seed = process.env['MIZU_SEED'] ?? String(Math.random());
  const lot = ({ name }: Recording): string =>
    createHash('sha256')
      .update(seed + name)
      .digest('hex');
  return all
    .map((recording) => ({ recording, lot: lot(recording) }))
    .sort((one, other) => (one.lot < other.lot ? -1 : 1))
    .slice(0, SAMPLE)
    .map(({ recording }) => recording);
}

describe('recordings behind clouds', { skip: skipWithoutFixtures }, () => {
  for (const recording of skipWithoutFixtures === false ? drawn() : []) {
    const status = recordedStatus(recording.name) ?? 200;
    const stream = recording.kind === 'stream';
    const answers = stream && status < 400 ? answersOf(recording) : [recording.text];
    for (const form of HOSTED_FORMS.filter(({ type }) => type === typeOf(recording))) {
      test(`${recording.name} over ${form.name}`, async () => {
        const type = stream && status < 400 ? 'text/event-stream' : 'application/json';
        for (const body of answers) await sameBehind(form, { status, headers: { 'content-type': type }, body }, stream);
      });
    }
  }
});
