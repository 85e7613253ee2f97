/** No pattern of the sources takes more than linear time, whatever it is shown; none runs out of stack over tens of megabytes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { figure } from '../../support/figures.ts';
import { type Attack, attacksOn, literalsOf, type Pattern, patternsOf } from './support/patterns.ts';
import { processorMs } from './support/processor-time.ts';

/**
 * What the operator alone can feed, or what runs in the demonstration only. The patterns of `sanitise.ts` see two kilobytes at
 * most, and are timed with it (security.test.ts).
 */
const ELSEWHERE =
  /src\/(simulator\/|cli\/|pages\/|http\/(config\/|tracing\/otlp)|store\/(money|multiplier|price-book|litellm-prices|models-dev-prices)|codecs\/errors\/sanitise)/;
const PATTERNS = patternsOf('src/**/*.ts').filter(({ place }) => !ELSEWHERE.test(place));
/** Quadratic work shows itself by the third; linear work is far below the bound at the last. */
const LENGTHS = [4_000, 16_000, 64_000];
const BOUND_MS = 100;

function run({ expression }: Pattern, text: string): void {
  const again = new RegExp(expression.source, expression.flags);
  if (again.global || again.sticky) text.replace(again, '');
  else again.test(text);
}

function timed(pattern: Pattern, text: string): number {
  const started = performance.now();
  run(pattern, text);
  return performance.now() - started;
}

/** Once by the wall, and only what was slow again by the processor, whose clock is coarse: others use it, too. */
function isSlow(pattern: Pattern, text: string): boolean {
  return timed(pattern, text) > BOUND_MS && processorMs(() => run(pattern, text)) > BOUND_MS;
}

const stretched = ({ head, piece, tail }: Attack, chars: number): string =>
  head + piece.repeat(Math.ceil(chars / piece.length)) + tail;

test('the reader of sources finds patterns, and only patterns', () => {
  const text = [
    'const a = b / c / d; // /x/',
    "const e = /[/]\\/'/g;",
    'f(`$' + "{/in/.test('/no/')} /no/`);",
    'return /end/u.exec(g) / 2;',
  ].join('\n');
  assert.deepEqual(
    literalsOf(text).map(({ source, flags, line }) => [source, flags, line]),
    [
      ["[/]\\/'", 'g', 2],
      ['in', '', 3],
      ['end', 'u', 4],
    ],
  );
});

/** The attack that takes too long, where there is one. */
function weaknessOf(pattern: Pattern): string | undefined {
  const worst = attacksOn(pattern.expression)
    .map((attack) => ({ attack, ms: timed(pattern, stretched(attack, 1_000)) }))
    .sort((a, b) => b.ms - a.ms)
    .slice(0, 4);
  for (const { attack } of worst) {
    const texts = LENGTHS.map((chars) => stretched(attack, chars));
    const found = texts.find((text) => isSlow(pattern, text));
    if (found !== undefined)
      return `${pattern.place} ${String(pattern.expression)}: ${JSON.stringify(attack)} of ${found.length}`;
  }
  return undefined;
}

test('quadratic and exponential patterns are found out', () => {
  const repeated = [/\s+$/, /(a|b)*c.*d/, /^bearer(?: +(.*))?$/i, /\bab[\w-]{8,}\.c/];
  // Only behind a beginning of their own.
  const led = [/^(["'])[^"']*\s[^"']*\1/, /^(?:a|\{(?:b|"c"\s*:?\s*)?)?$/];
  for (const expression of [...repeated, ...led]) assert.ok(weaknessOf({ place: 'here', expression }), String(expression));
  for (const expression of [/^\s*a/, /"[^"]*"/g]) assert.equal(weaknessOf({ place: 'here', expression }), undefined);
});

test(`F23: ${PATTERNS.length} patterns, each against every attack that its own words suggest`, (t) => {
  assert.ok(PATTERNS.length > 60, `only ${PATTERNS.length} patterns were found`);
  const slow = PATTERNS.flatMap((pattern) => weaknessOf(pattern) ?? []);
  assert.deepEqual(slow, []);
  figure(
    t,
    'patterns timed, attacks on each at most',
    `${PATTERNS.length}, ${Math.max(...PATTERNS.map(({ expression }) => attacksOn(expression).length))}`,
  );
});

test('F23: no repeated group runs out of stack over ten megabytes', () => {
  const texts = ['"', "['", '["', ''].map((head) => head + 'a'.repeat(10_000_000));
  for (const pattern of PATTERNS.filter(({ expression }) => /\)[*+{]/.test(expression.source)))
    for (const text of texts) run(pattern, text);
});
