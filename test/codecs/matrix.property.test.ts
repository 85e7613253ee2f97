/**
 * Every law over every dialect and every pair of dialects, and over messages as Bedrock frames them. The other clouds send the
 * bytes of the vendor itself: `test/http/platforms/recordings.test.ts` holds them to it.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cut } from '../support/arbitraries/response.ts';
import { bedrock, DIALECTS, UPSTREAMS } from '../support/dialects.ts';
import {
  lawAlwaysSealed,
  lawCutsDoNotMatter,
  lawEndingsCanBeTakenBack,
  lawInterleavingDoesNotMatter,
  lawNoSuccessFromFailure,
  lawOpaqueMeansOpaque,
  lawRoundTrip,
  lawWholeIsFold,
} from '../support/laws.ts';
import { lawSameDialectIsLossless, lawWiringDoesNotMatter } from '../support/pipeline-laws.ts';

for (const upstream of [...UPSTREAMS, bedrock]) {
  lawCutsDoNotMatter(upstream);
  lawRoundTrip(upstream);
  for (const client of DIALECTS) {
    lawAlwaysSealed(upstream, client);
    lawNoSuccessFromFailure(upstream, client);
    lawEndingsCanBeTakenBack(upstream, client);
    lawWholeIsFold(upstream, client);
    lawOpaqueMeansOpaque(upstream, client);
    lawInterleavingDoesNotMatter(upstream, client);
    lawWiringDoesNotMatter(upstream, client);
  }
}

for (const dialect of DIALECTS) lawSameDialectIsLossless(dialect);

test('the texts of the laws are cut where they are told to be, never inside a character', () => {
  assert.deepEqual(cut('hello world', [0.5, 0.2, 0.5, 0, 1]), ['he', 'llo', ' world']);
  assert.deepEqual(cut('😀😀', [0.25, 0.5, 0.75]), ['😀', '😀']);
  assert.deepEqual(cut('', [0.5]), []);
});
