/** What was used as what is priced: classes that do not overlap, and nothing counted twice or lost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isPlaceholder, type Usage } from '../../../src/codecs/canonical/usage.ts';
import { billableUsage } from '../../../src/http/money/billable.ts';

test('every class of the main generation and of a pass on top is added once', () => {
  const main = { input: 1, cacheRead: 2, cacheWrite5m: 4, cacheWrite1h: 8, cacheWrite: 16, output: 32 };
  const passes = [
    { type: 'advisor', input: 100, cacheRead: 200, cacheWrite5m: 400, cacheWrite1h: 800, cacheWrite: 1600, output: 3200 },
    { type: 'compaction', input: 10_000, cacheRead: 20_000, cacheWrite: 30_000, output: 40_000 },
  ];
  assert.deepEqual(billableUsage({ ...main, extra: passes }), {
    input: 10_101,
    cachedInput: 20_202,
    cacheWrite5m: 404,
    cacheWrite1h: 808,
    cacheWriteUnsplit: 31_616,
    output: 43_232,
  });
});

const CASES: readonly (readonly [name: string, usage: Usage, billed: object])[] = [
  ['nothing', {}, {}],
  [
    'a sum of counts that is larger than any count is billed as the largest, never as nothing',
    { input: 1e9, output: 2e9, extra: [{ type: 'compaction', input: 1, cacheRead: 0, cacheWrite: 0, output: 1 }] },
    { input: 1e9, output: 1e9 },
  ],
  ['zeros', { input: 0, output: 0, reasoning: 0, images: 0 }, {}],
  ['reasoning is a part of the output', { output: 10, reasoning: 4 }, { output: 6, reasoning: 4 }],
  ['all of the output was reasoning', { output: 10, reasoning: 10 }, { reasoning: 10 }],
  ['U14: more reasoning than output stands beside it', { output: 10, reasoning: 15 }, { output: 10, reasoning: 15 }],
  ['U14: reasoning alone', { reasoning: 15 }, { reasoning: 15 }],
  [
    'U14: the output of a pass on top does not hide that',
    { output: 0, reasoning: 15, extra: [{ type: 'advisor', input: 0, cacheRead: 0, cacheWrite: 0, output: 20 }] },
    { output: 20, reasoning: 15 },
  ],
  [
    'pictures are a part of input and output',
    { input: 10, imageInput: 7, output: 20, imageOutput: 12, reasoning: 5 },
    { input: 3, imageInput: 7, output: 3, imageOutput: 12, reasoning: 5 },
  ],
  [
    'a share is never more than its whole',
    { input: 5, imageInput: 7, output: 20, imageOutput: 18, reasoning: 5 },
    { imageInput: 5, imageOutput: 18, reasoning: 2 },
  ],
  [
    'nor does it make the rest of it negative',
    { input: 5, imageInput: 5, output: 10, imageOutput: 12, reasoning: 5 },
    { imageInput: 5, imageOutput: 10 },
  ],
  [
    'pictures of a pass on top',
    {
      output: 1,
      extra: [{ type: 'image', input: 10, cacheRead: 0, cacheWrite: 0, output: 30, imageInput: 4, imageOutput: 29 }],
      images: 2,
    },
    { input: 6, imageInput: 4, output: 2, imageOutput: 29, images: 2 },
  ],
];

for (const [name, usage, billed] of CASES) test(name, () => assert.deepEqual(billableUsage(usage), billed));

test('calls of metered tools and the tier are passed on', () => {
  const meters = new Map([['web_search', 2]]);
  assert.deepEqual(billableUsage({ input: 1, meters, serviceTier: 'flex' }), { input: 1, meters, serviceTier: 'flex' });
});

test('zeros are a placeholder; any one figure is a report', () => {
  const zeros: Usage = { input: 0, cacheRead: 0, output: 0, reasoning: 0, images: 0, extra: [], meters: new Map() };
  assert.equal(isPlaceholder({}), true);
  assert.equal(isPlaceholder(zeros), true);
  const reports: readonly Usage[] = [
    { input: 1 },
    { cacheRead: 1 },
    { cacheWrite: 1 },
    { cacheWrite5m: 1 },
    { cacheWrite1h: 1 },
    { output: 1 },
    { reasoning: 1 },
    { images: 1 },
    { extra: [{ type: 'advisor', input: 1, cacheRead: 0, cacheWrite: 0, output: 0 }] },
    { meters: new Map([['web_search', 1]]) },
  ];
  for (const report of reports) assert.equal(isPlaceholder({ ...zeros, ...report }), false, JSON.stringify(report));
});

test('what an upstream made up to name a meter or a tier is bounded: it stands in every row', () => {
  const long = 'x'.repeat(3_000_000);
  const meters = new Map(Array.from({ length: 20_000 }, (_, index): [string, number] => [`m${index}`, 1]));
  const billed = billableUsage({ input: 1, meters: new Map([['web_search', 2], [long, 1], ...meters]), serviceTier: long });
  assert.equal(billed.meters?.size, 32);
  assert.equal(billed.meters.get('web_search'), 2);
  assert.equal(billed.serviceTier?.length, 64);
  assert.ok([...billed.meters.keys()].every((name) => name.length <= 64));
  const few = new Map([
    ['x'.repeat(64), 1],
    ['x'.repeat(65), 1],
  ]);
  assert.deepEqual([...(billableUsage({ meters: few }).meters ?? [])], [['x'.repeat(64), 1]]);
});
