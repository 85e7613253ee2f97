/**
 * What the slow suites counted and measured: each test says its figures, a run that records gathers them in
 * docs/reliability.json, and docs/reliability.md is printed from there. So no figure is typed.
 */
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

export const FIGURES = new URL('../../docs/reliability.json', import.meta.url);

export interface Figure {
  /** Its file, as one would name it: `faults/soak`. */
  readonly suite: string;
  readonly claim: string;
  readonly figure: string;
}

export interface Figures {
  readonly node: string;
  readonly cores: number;
  readonly figures: readonly Figure[];
}

/** Says a figure in the test's output and, in a run that records, keeps it. */
export function figure(t: TestContext, claim: string, text: string): void {
  t.diagnostic(`${claim}: ${text}`);
  const file = process.env['MIZU_FIGURES'];
  if (file === undefined) return;
  const suite = (t.filePath ?? '').replace(/^.*\/test\/(slow\/)?/, '').replace(/(\.test)?\.ts$/, '');
  appendFileSync(file, `${JSON.stringify({ suite, claim, figure: text })}\n`);
}

export function readFigures(): Figures {
  return JSON.parse(readFileSync(FIGURES, 'utf8')) as Figures;
}

/** The committed figures with these in the place of older ones about the same. */
export function keepFigures(found: readonly Figure[]): void {
  const idOf = ({ suite, claim }: Figure): string => `${suite} ${claim}`;
  const kept = new Map([...readFigures().figures, ...found].map((one) => [idOf(one), one]));
  const figures = [...kept.values()].sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1));
  writeFileSync(FIGURES, `${JSON.stringify({ node: process.version, cores: cpus().length, figures }, null, 2)}\n`);
}

/** A place for the figures of one run; `take` reads and removes it. */
export function gatherFigures(): { readonly file: string; take(): Figure[] } {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-figures-'));
  const file = join(folder, 'figures');
  writeFileSync(file, '');
  return {
    file,
    take() {
      const lines = readFileSync(file, 'utf8').split('\n');
      rmSync(folder, { recursive: true });
      return lines.filter((line) => line !== '').map((line): Figure => JSON.parse(line));
    },
  };
}

/** A table for docs/reliability.md. */
export function printFigures({ node, cores, figures }: Figures): string {
  return [
    `Recorded with Node ${node.replace(/^v/, '')} on ${cores} busy cores of a shared machine.`,
    '',
    '| claim | figure | suite |',
    '|---|---|---|',
    ...figures.map(({ suite, claim, figure: text }) => `| ${claim} | ${text} | ${suite} |`),
  ].join('\n');
}
