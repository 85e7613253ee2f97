/** What an encoder did with a probe, judged against its loss table; and the matrix of all verdicts, so that a hole is seen. */
import assert from 'node:assert/strict';
import { type Decision, drop, keep, refuse } from '../../src/codecs/canonical/features.ts';

export const PROBE = 'PROBE7';
/** `PROBE7` in base64: media that can be found again. */
export const DATA = 'UFJPQkU3';

/** What shows that a feature arrived; a pattern of its own where keeping and coercing look different. */
export type Sign = RegExp | Partial<Record<'keep' | 'coerce' | 'drop', RegExp>>;

/** Asserts that `out` holds the sign where the table says keep or coerce, lacks it for drop, and that a refusal was one. */
export function judge(decision: Decision, out: string, isRefused: boolean, sign: Sign = new RegExp(PROBE)): void {
  assert.equal(isRefused, decision.does === 'refuse', out.slice(0, 600));
  if (decision.does === 'refuse') return;
  const pattern = sign instanceof RegExp ? sign : sign[decision.does];
  assert.ok(pattern !== undefined, `no sign for ${decision.does}`);
  if (decision.does === 'drop') assert.doesNotMatch(out, pattern);
  else assert.match(out, pattern);
}

const LETTERS = { keep: 'K', coerce: 'c', drop: '-', refuse: 'R' } as const;

/** Features against encoders: each cell is judged once. */
export class Matrix {
  readonly #cells = new Map<string, Decision['does']>();

  set(feature: string, encoder: string, decision: Decision): void {
    this.#cells.set(`${feature}\n${encoder}`, decision.does);
  }

  /** Asserts that no cell is missing; gives the lines to print. */
  lines(features: readonly string[], encoders: readonly string[]): string[] {
    const rows = features.map((feature) => {
      const cells = encoders.map((encoder) => this.#cells.get(`${feature}\n${encoder}`));
      assert.ok(!cells.includes(undefined), `a hole: ${feature}`);
      return `${cells.map((does) => LETTERS[does ?? 'drop']).join(' ')}  ${feature}`;
    });
    return [`K keep, c coerce, - drop, R refuse; ${encoders.join(', ')}`, ...rows];
  }
}

/** The entries that each kind of entry is turned into. */
export const FLIPS: Readonly<Record<Decision['does'], readonly Decision[]>> = {
  keep: [drop('flipped'), refuse('flipped')],
  coerce: [keep, drop('flipped'), refuse('flipped')],
  drop: [keep, refuse('flipped')],
  refuse: [drop('flipped')],
};

/** What `run` does while the table has another entry. */
export function withEntry<Feature extends string, T>(
  table: Readonly<Record<Feature, Decision>>,
  feature: Feature,
  entry: Decision,
  run: () => T,
): T {
  const before = table[feature];
  try {
    Object.assign(table, { [feature]: entry });
    return run();
  } finally {
    Object.assign(table, { [feature]: before });
  }
}
