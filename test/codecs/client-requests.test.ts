/**
 * Every body that a real client sent, decoded and encoded to each upstream dialect; refused only for the listed reasons. Needs
 * MIZU_FIXTURES.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { GatewayError } from '../../src/codecs/canonical/error.ts';
import { isObject } from '../../src/codecs/canonical/json.ts';
import { CLIENTS, UPSTREAMS } from '../../src/codecs/registry.ts';
import { clientRequests, type RecordedRequest, skipWithoutFixtures } from '../support/fixtures.ts';
import { refusalOf } from '../support/upstream-checks.ts';
import { openForTests, ownerOf, targetOf } from '../support/wire.ts';

/** Paths of text endpoints, by the dialect that speaks there. */
const ENDPOINTS: readonly (readonly [RegExp, string])[] = [
  [/\/chat\/completions$/, 'chat'],
  [/\/completions$/, 'completions'],
  [/\/responses$/, 'responses'],
  [/\/messages$/, 'messages'],
];

/** Why a real request cannot be said in another dialect. */
const REASONS = [/audio/i, /freeform|grammar|custom tool/i, /file/i];

function bodiesOf({ body, frames }: RecordedRequest): unknown[] {
  return [...(body === undefined ? [] : [body]), ...(frames ?? [])];
}

describe('requests of real clients', { skip: skipWithoutFixtures }, () => {
  clientRequests().forEach((recorded, index) => {
    const path = new URL(recorded.url, 'http://gateway').pathname;
    const dialect = ENDPOINTS.find(([pattern]) => pattern.test(path))?.[1];
    const client = CLIENTS.find((codec) => codec.dialect === dialect);
    if (client === undefined) return;
    test(`${recorded.client} ${index}: ${path}`, () => {
      for (const json of bodiesOf(recorded)) {
        // Frames that go on where the connection stood mean nothing alone.
        if (!isObject(json) || json['type'] === 'response.append' || typeof json['previous_response_id'] === 'string') continue;
        const text = JSON.stringify(json);
        const request = client.decodeRequest(text, json, { open: openForTests });
        for (const upstream of UPSTREAMS) {
          const target = targetOf(ownerOf(upstream), { options: { lowerCustomTools: true } });
          try {
            const { body } = upstream.encodeRequest(request, target);
            assert.equal(upstream.encodeRequest(request, target).body, body, 'not deterministic');
            if (upstream.dialect === client.dialect) continue;
            assert.equal(refusalOf(upstream.dialect, body), undefined, `${upstream.dialect}: ${body.slice(0, 2000)}`);
          } catch (error) {
            if (!(error instanceof GatewayError)) throw error;
            assert.equal(error.code, 'unsupported_conversion');
            assert.ok(
              REASONS.some((reason) => reason.test(error.message)),
              `${upstream.dialect}: ${error.message}`,
            );
          }
        }
      }
    });
  });
});
