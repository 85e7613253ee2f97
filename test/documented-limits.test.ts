/** What docs/operating.md says of limits and memory is what the code has: its defaults, its constants, and what they add up to. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { READ_AT_START } from '../src/http/config/start-only.ts';
import { defaultOf, hasDefault } from './support/defaults.ts';

const OPERATING = readFileSync('docs/operating.md', 'utf8');
const [, MEMORY = ''] = /^## Memory\n([\s\S]*?)^## /m.exec(OPERATING) ?? [];

const MIB = 1024 * 1024;
const UNITS: Readonly<Record<string, number>> = { '': 1, ms: 1, s: 1_000, KiB: 1024, MiB: MIB, GiB: 1024 * MIB };
const amountOf = (digits: string, unit = ''): number => Number(digits.replaceAll(',', '')) * (UNITS[unit] ?? Number.NaN);

/** A constant of a file of `src/`, as it stands there: a number, or a product of some. */
function constant(file: string, name: string): number {
  const text = readFileSync(`src/${file}`, 'utf8');
  const [, value = ''] = new RegExp(`\\b${name}\\b(?: = |: )([\\d_ *]+)[,; }\\n]`).exec(text) ?? [];
  assert.notEqual(value, '', `${file} has no ${name}`);
  return value.split('*').reduce((product, factor) => product * Number(factor.trim().replaceAll('_', '')), 1);
}

test('each default that docs/operating.md gives behind the name of an option is that of the schema', () => {
  const named = [...OPERATING.matchAll(/`([a-z_]+(?:\.[a-z_]+)*)`[^`(|]{0,12} \(([\d,]+)(?: (ms|s|KiB|MiB|GiB))?[);:, ]/g)];
  const told = named.flatMap(([, path = '', digits = '', unit]) => {
    const whole = [path, `health.${path}`].find(hasDefault);
    return whole === undefined ? [] : [[whole, amountOf(digits, unit)] as const];
  });
  assert.ok(told.length >= 15, `${told.length} defaults`);
  for (const [path, amount] of told) assert.equal(amount, defaultOf(path), path);
  const history = ['entry_bytes', 'key_bytes', 'total_bytes'].map((name) => defaultOf(`history.${name}`) / MIB);
  assert.ok(MEMORY.includes(`\`history.entry_bytes\`, \`key_bytes\`, \`total_bytes\` (${history.join(', ')} MiB)`));
});

test('docs/operating.md names the settings that are read only at start', () => {
  const [, named = ''] = /^Some settings are read only at start: ([^.]*(?:\.[a-z_]+`[^.]*)*)\./m.exec(OPERATING) ?? [];
  const told = [...named.matchAll(/`([a-z_.]+)`/g)].map(([, name = '']) => name);
  assert.deepEqual(told.sort(), Object.keys(READ_AT_START).sort());
});

const number = (count: number): string => count.toLocaleString('en-US');
const size = (bytes: number): string => (bytes < MIB ? `${bytes / 1024} KiB` : `${bytes / MIB} MiB`);
const seconds = (ms: number): string => `${ms / 1_000} s`;

/** What stands in "Memory", made of what the code has. */
const TOLD: Readonly<Record<string, string>> = {
  'a long number or white space': `${number(constant('codecs/json/scan.ts', 'MAX_BARE'))} characters`,
  'depth of JSON within a text': `deeper than ${constant('codecs/json/parse-in-steps.ts', 'MAX_DEPTH')} levels`,
  'a value beside its text': `each value counted as ${constant('http/request/key-slots.ts', 'VALUE_BYTES')} bytes more`,
  'the share of the heap':
    { 4: 'never more than a quarter of the heap' }[constant('http/request/key-slots.ts', 'HEAP_SHARE')] ?? '',
  'time of an unfinished message': `(64 MiB), ${seconds(constant('http/websocket/inbound.ts', 'MESSAGE_MS'))}`,
  'inflated envelopes': `inflated | ${size(constant('codecs/envelope.ts', 'MAX_OPENED_BYTES'))}`,
  'what upstreams say of errors': `(${size(constant('http/dispatch/upstream-body.ts', 'MAX_ERROR_BYTES'))} an attempt)`,
  'the settlement log of a folder': `on the local disk ${size(constant('store/settlements/log.ts', 'MAX_BYTES'))}`,
  'the settlement log beside a database': `on the local disk ${size(constant('store/postgres/options.ts', 'spoolMaxBytes'))}`,
  'live tails': `admin API | ${constant('http/admin/admin-api.ts', 'MOST_TAILS')}, each`,
  'keys of a database': `of a database ${number(constant('store/postgres/cache.ts', 'MOST_KEYS'))} of each`,
  'tokens of nobody': `${number(constant('store/postgres/cache.ts', 'MOST_UNKNOWN'))} tokens that nobody has`,
  'keys of a folder': `of a folder ${number(constant('store/lmdb/keys.ts', 'REMEMBERED'))} keys`,
  'keys that had money': `${number(constant('http/request/solvency.ts', 'MAX_REMEMBERED'))} keys that had money`,
  'models by their speed': `${number(constant('http/money/token-rates.ts', 'MAX_KNOWN'))} models by their speed`,
  'a slow reader': `about ${size(constant('http/websocket/outlet.ts', 'HIGH_WATER_BYTES'))} a stream`,
  'a body without money': `of more than ${size(constant('http/request/solvency.ts', 'FREE_BODY_BYTES'))} is answered`,
  'what is discarded of it': `at most ${size(constant('http/server/answer-error.ts', 'DRAIN_UNPAID = { ms: 1_000, bytes'))} is\ndiscarded, for at most 1 s`,
  'refusals a second': `written ${{ 10: 'ten' }[constant('http/exchange/refusal-rates.ts', 'WRITTEN_A_SECOND')]} times a second`,
  'refusals before a key waits': `After ${constant('http/exchange/refusal-rates.ts', 'ANSWERED_A_SECOND')} refusals in a second`,
};
for (const [what, words] of Object.entries(TOLD))
  test(`docs/operating.md says it of memory as the code has it: ${what}`, () => {
    assert.notEqual(words, '');
    assert.ok(MEMORY.includes(words), `not there: ${words}`);
  });

test('the whole process has room in what docs/operating.md says is enough', () => {
  const [, heapMib, shareMib, enoughGib] =
    /--max-old-space-size=(\d+)` bodies have at most (\d+) MiB, and (\d+) GiB for the whole process are enough/.exec(MEMORY) ??
    [];
  const [, ownMib] = /beside the \d+ to (\d+) MiB of its own/.exec(MEMORY) ?? [];
  const bodies = Math.min(
    defaultOf('limits.body_bytes') / MIB,
    Number(heapMib) / constant('http/request/key-slots.ts', 'HEAP_SHARE'),
  );
  assert.equal(bodies, Number(shareMib));
  assert.ok(MEMORY.includes('up to five times `limits.body_bytes`, two of them of heap, and\n`history.total_bytes`'));
  /** Of the rows of the table: conversations, what a database's process remembers, times, and tails. */
  const remembered = [...MEMORY.matchAll(/: (\d+) MiB(?=[ ;|])/g)].map(([, mib]) => Number(mib));
  assert.equal(remembered.length, 4, remembered.join(', '));
  const tails = 0.3 * constant('http/admin/admin-api.ts', 'MOST_TAILS');
  const unfinished = defaultOf('websocket.unfinished_bytes') / MIB;
  const sum =
    Number(ownMib) +
    5 * bodies +
    defaultOf('history.total_bytes') / MIB +
    remembered.reduce((a, b) => a + b) +
    tails +
    unfinished;
  assert.ok(sum <= Number(enoughGib) * 1024, `${sum} MiB`);
  // Of heap: two times the bodies, the history and the caches.
  assert.ok(2 * bodies + defaultOf('history.total_bytes') / MIB + remembered.reduce((a, b) => a + b) + tails <= Number(heapMib));
});
