/**
 * No limit of the defaults is noticed by a real client: all that was recorded, sent at once to a gateway at its defaults. Needs
 * MIZU_FIXTURES.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isObject, type JsonObject } from '../../src/codecs/canonical/json.ts';
import { clientRequests, skipWithoutFixtures } from '../support/fixtures.ts';
import { testGateway } from '../support/test-gateway.ts';
import { formsConfig, startVendors, upstreamForms } from '../support/upstream-forms.ts';

const FORMS = upstreamForms(import.meta.filename);
const ENDPOINT = /\/(?:chat\/completions|completions|responses|messages)$/;

/** Bodies that begin a conversation, by path: what goes on where a connection stood means nothing alone. */
function openings(): { readonly path: string; readonly body: JsonObject }[] {
  return clientRequests().flatMap(({ url, body, frames }) => {
    const { pathname } = new URL(url, 'http://gateway');
    const path = ENDPOINT.exec(pathname)?.[0];
    if (path === undefined) return [];
    return [body, ...(frames ?? [])].flatMap((one) => {
      if (!isObject(one) || one['type'] === 'response.append' || typeof one['previous_response_id'] === 'string') return [];
      const { type: _frame, ...rest } = one;
      return [{ path: `/v1${path}`, body: rest }];
    });
  });
}

test('what real clients send at once is refused by no limit, whatever upstream answers', {
  skip: skipWithoutFixtures,
}, async (t) => {
  const simulator = await startVendors();
  t.after(() => simulator.close());
  await using gateway = await testGateway(formsConfig(FORMS, simulator.url));
  gateway.store.walletNanos = 10n ** 18n;
  const asked = openings();
  assert.ok(asked.length > 50, `${asked.length} requests`);
  const refused = await Promise.all(
    FORMS.flatMap(({ name: model }) =>
      asked.map(async ({ path, body }) => {
        const answer = await gateway.post(path, { ...body, model });
        const text = await answer.text();
        return [402, 413, 429, 503].includes(answer.status) ? [`${answer.status} ${model} ${path}: ${text.slice(0, 200)}`] : [];
      }),
    ),
  );
  assert.deepEqual(refused.flat(), []);
});
