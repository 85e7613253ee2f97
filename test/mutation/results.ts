/**
 * What became of the mutants of each room, one line a mutant: `results/ROOM.jsonl`, appended to as they end and put in order at
 * the end of a run.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Mutant } from './sample.ts';

/** The mutants of a room that are run unless one asks for more. */
export const SAMPLE = 300;

/** The rooms, as patterns of their files. */
export const ROOMS: Readonly<Record<string, readonly string[]>> = {
  charge: ['src/store/charge.ts', 'src/store/{explain-charge,price-book,prices,decimal,money,multiplier,payer}.ts'],
  store: [
    'src/store/{books,settlements}/*.ts',
    'src/store/{account,key,video}-rules.ts',
    'src/store/{ledger,reservations,spend-windows,rate-limits,settlement,videos}.ts',
  ],
  exchange: ['src/http/{exchange,money,text,dispatch}/*.ts'],
  streams: ['src/streams/*.ts'],
  codecs: ['src/codecs/**/*.ts'],
};

export type Verdict = 'killed' | 'killed by time' | 'survived' | 'does not compile';

export interface Row {
  readonly id: string;
  readonly mutator?: string;
  readonly original?: string;
  readonly text?: string;
  readonly verdict: Verdict;
  /** The test that failed, after its file. */
  readonly by?: string;
  /** Written by hand: why nobody can notice this change, so that it counts neither way. */
  readonly equivalent?: string;
}

const RESULTS = fileURLToPath(new URL('./results/', import.meta.url));
const fileOf = (room: string): string => join(RESULTS, `${room}.jsonl`);

/** By id; the later line holds. */
export function readResults(room: string): Map<string, Row> {
  if (!existsSync(fileOf(room))) return new Map();
  const lines = readFileSync(fileOf(room), 'utf8').split('\n').filter(Boolean);
  return new Map(lines.map((line) => JSON.parse(line) as Row).map((row) => [row.id, row]));
}

export function append(room: string, row: Row): void {
  mkdirSync(RESULTS, { recursive: true });
  appendFileSync(fileOf(room), `${JSON.stringify(row)}\n`);
}

/** Only the rows of mutants that are still drawn, in the order of their ids. */
export function settle(room: string, drawn: ReadonlySet<string>): void {
  const rows = [...readResults(room).values()].filter(({ id }) => drawn.has(id)).sort((a, b) => (a.id < b.id ? -1 : 1));
  writeFileSync(fileOf(room), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
}

export function rowOf({ id, mutator, original, text }: Mutant, verdict: Verdict, by?: string): Row {
  if (verdict === 'does not compile') return { id, verdict };
  const short = original.length > 100 ? `${original.slice(0, 100)}…` : original;
  return { id, mutator, original: short, text, verdict, ...(by !== undefined && { by }) };
}

export interface Figures {
  readonly ran: number;
  readonly equivalent: number;
  readonly killed: number;
  readonly survived: number;
}

export function figuresOf(rows: Iterable<Row>): Figures {
  const ran = [...rows].filter(({ verdict }) => verdict !== 'does not compile');
  const survived = ran.filter(({ verdict }) => verdict === 'survived');
  const equivalent = survived.filter((row) => row.equivalent !== undefined).length;
  return { ran: ran.length, equivalent, killed: ran.length - survived.length, survived: survived.length - equivalent };
}

/** The table of CONTRIBUTING.md. */
export function printMutation(): string {
  const rows = Object.keys(ROOMS).map((room) => {
    const { ran, equivalent, killed, survived } = figuresOf(readResults(room).values());
    const share = killed === 0 ? '' : `${((100 * killed) / (killed + survived)).toFixed(1)} %`;
    return `| ${room} | ${ran} | ${equivalent} | ${killed} | ${survived} | ${share} |\n`;
  });
  return `| room | ran | equivalent | killed | survived | killed of the rest |\n|---|---|---|---|---|---|\n${rows.join('')}`;
}
