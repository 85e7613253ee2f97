/**
 * The ledger of known failures: which ids there are, which tests cover them (their titles hold the ids), which are still open,
 * and the few that cannot occur. Read after a whole run: an id counts only where a test that names it ran and passed.
 */
import { readFileSync } from 'node:fs';

const SECTIONS: Readonly<Record<string, number>> = {
  M: 29,
  R: 25,
  P: 11,
  G: 18,
  S: 13,
  T: 10,
  I: 12,
  W: 13,
  U: 15,
  E: 12,
  X: 13,
};
export const IDS: readonly string[] = Object.entries(SECTIONS).flatMap(([letter, count]) =>
  Array.from({ length: count }, (_, index) => `${letter}${index + 1}`),
);
/** At most so many may have a reason why they cannot occur. */
export const MOST_EXCUSED = 15;

export interface Ledger {
  /** By the work that will cover them. */
  readonly open: Readonly<Record<string, readonly string[]>>;
  readonly cannotOccur: Readonly<Record<string, string>>;
}

export interface Report {
  readonly title: string;
  readonly passed: boolean;
  /** Why it was skipped. */
  readonly skipped?: string;
}

export function readLedger(): Ledger {
  return JSON.parse(readFileSync(new URL('../failures/ledger.json', import.meta.url), 'utf8')) as Ledger;
}

/** The ids that stand in a title: `M1`, `G16 U8`, `(R11)`. */
export function idsIn(title: string): string[] {
  return [...title.matchAll(/(?<![A-Za-z0-9])([MRPGSTIWUEX]\d{1,2})(?![A-Za-z0-9])/g)].flatMap(([, id]) =>
    id !== undefined && IDS.includes(id) ? [id] : [],
  );
}

/** What is wrong with the ledger after this run; empty when every id is covered, open or excused. */
export function complaints(ledger: Ledger, reports: readonly Report[]): string[] {
  const passed = new Set<string>();
  const failed = new Set<string>();
  for (const { title, passed: isGood } of reports) {
    for (const id of idsIn(title)) (isGood ? passed : failed).add(id);
  }
  const open = new Set(Object.values(ledger.open).flat());
  const excused = Object.entries(ledger.cannotOccur);
  const found: string[] = [];
  for (const id of IDS) {
    const isExcused = Object.hasOwn(ledger.cannotOccur, id);
    if (passed.has(id) || isExcused || open.has(id)) continue;
    found.push(failed.has(id) ? `${id}: a test names it, but none ran and passed` : `${id}: no test names it`);
  }
  if (excused.length > MOST_EXCUSED) found.push(`${excused.length} ids are excused, at most ${MOST_EXCUSED} may be`);
  for (const [id, reason] of excused) if (reason.trim().length < 20) found.push(`${id}: its excuse says nothing`);
  for (const id of [...open, ...excused.map(([one]) => one)]) if (!IDS.includes(id)) found.push(`${id}: no such id`);
  return found;
}
