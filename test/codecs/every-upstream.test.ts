/** Every upstream of the registry has tests of what it says: the laws of its dialect, or a file of its own where it shares one. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { UPSTREAM_NAMES, UPSTREAMS } from '../../src/codecs/registry.ts';
import { UPSTREAMS as UNDER_LAWS } from '../support/dialects.ts';

test('each upstream is under the laws of its dialect, or a test beside them names its Channel type', () => {
  const texts = globSync('test/codecs/*/**/*.test.ts').map((file) => readFileSync(file, 'utf8'));
  const untested = UPSTREAMS.filter(
    (codec) =>
      !UNDER_LAWS.some(({ upstream }) => upstream === codec) && !texts.some((text) => text.includes(`'${codec.channelType}'`)),
  );
  assert.deepEqual(
    untested.map(({ channelType }) => channelType),
    [],
    'these want a test below test/codecs/ that names them',
  );
});

test('no two upstreams have one name', () => {
  assert.equal(UPSTREAM_NAMES.size, UPSTREAMS.length);
});
