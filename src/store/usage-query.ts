/**
 * How a query of usage is answered from the rollups: which rows it reads, and how they become groups. Pure; shared by every
 * engine.
 */
import {
  addSums,
  HOUR_MS,
  HOURS_A_DAY,
  hourOf,
  isNothing,
  noSums,
  type Rollup,
  type UsageDimension,
  type UsageFilters,
  type UsageGroup,
  type UsageRange,
  type UsageSums,
} from './rollups.ts';
import { dayName } from './spend-windows.ts';
import type { Steps } from './steps.ts';

/** Rows of hours or of days: from `from`, before `to`. */
export interface RollupSpan {
  readonly unit: 'hour' | 'day';
  readonly from: number;
  readonly to: number;
}

export interface UsagePlan {
  readonly spans: readonly RollupSpan[];
  /** False: the rows of all keys together have the answer. */
  readonly byKey: boolean;
}

/** The years 1970 to 9999; a wider range would be no number of hours. */
const MAX_MS = Date.UTC(9999, 11, 31, 23);

export function planOf(range: UsageRange, filters: UsageFilters, groupBy: readonly UsageDimension[]): UsagePlan {
  const clamped = (ms: number): number => (ms > 0 ? Math.min(ms, MAX_MS) : 0);
  const from = hourOf(clamped(range.fromMs));
  const to = Math.ceil(clamped(range.toMs) / HOUR_MS);
  const byKey =
    filters.accountId !== undefined || filters.keyId !== undefined || groupBy.includes('account') || groupBy.includes('key');
  return { spans: spansOf(from, to, groupBy.includes('hour')).filter((span) => span.from < span.to), byKey };
}

/** Whole days, and the hours before and behind them. */
function spansOf(from: number, to: number, needsHours: boolean): RollupSpan[] {
  const [firstDay, lastDay] = [Math.ceil(from / HOURS_A_DAY), Math.floor(to / HOURS_A_DAY)];
  if (needsHours || firstDay >= lastDay) return [{ unit: 'hour', from, to }];
  return [
    { unit: 'hour', from, to: firstDay * HOURS_A_DAY },
    { unit: 'day', from: firstDay, to: lastDay },
    { unit: 'hour', from: lastDay * HOURS_A_DAY, to },
  ];
}

type GroupMembers = Pick<UsageGroup, 'hour' | 'day' | 'accountId' | 'keyId' | 'model' | 'channelId' | 'code'>;
type Word = (row: Rollup, unit: RollupSpan['unit']) => string | number;

/** By dimension, in the order of {@link UsageByHour}: the member of a group, and what a row has there. */
const DIMENSIONS: readonly (readonly [UsageDimension, keyof GroupMembers, Word])[] = [
  ['hour', 'hour', ({ at }) => at * HOUR_MS],
  ['day', 'day', ({ at }, unit) => dayName(unit === 'day' ? at : Math.floor(at / HOURS_A_DAY))],
  ['account', 'accountId', ({ accountId }) => accountId],
  ['key', 'keyId', ({ keyId }) => keyId],
  ['model', 'model', ({ model }) => model],
  ['channel', 'channelId', ({ channelId }) => channelId],
  ['code', 'code', ({ code }) => code],
];

/** Rows, or sums of rows, become groups. A month by the hour is some ten thousand rows. */
export class UsageGroups {
  readonly #wanted: typeof DIMENSIONS;
  readonly #groups = new Map<string, { readonly members: GroupMembers; readonly sums: UsageSums; errors: number }>();

  constructor(groupBy: readonly UsageDimension[]) {
    this.#wanted = DIMENSIONS.filter(([dimension]) => groupBy.includes(dimension));
  }

  add(row: Rollup, unit: RollupSpan['unit']): void {
    let name = '';
    for (const [, , word] of this.#wanted) name += `${word(row, unit)}\n`;
    let group = this.#groups.get(name);
    if (group === undefined) {
      const members = Object.fromEntries(this.#wanted.map(([, member, word]) => [member, word(row, unit)])) as GroupMembers;
      group = { members, sums: noSums(), errors: 0 };
      this.#groups.set(name, group);
    }
    addSums(group.sums, row.sums);
    if (row.code !== '') group.errors += row.sums.requests;
  }

  /** By their members, in the order of the dimensions: quick where the rows came in that order. */
  async result(steps: Steps): Promise<UsageGroup[]> {
    const groups: UsageGroup[] = [];
    for (const { members, sums, errors } of this.#groups.values()) {
      if (!isNothing(sums)) groups.push({ ...members, ...sums, errors });
      if (steps.isOver) await steps.next();
    }
    await steps.next();
    const members = this.#wanted.map(([, member]) => member);
    return groups.sort((a, b) => compareMembers(members, a, b));
  }
}

function compareMembers(members: readonly (keyof GroupMembers)[], a: GroupMembers, b: GroupMembers): number {
  for (const member of members) {
    const [left, right] = [a[member] ?? '', b[member] ?? ''];
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}

/** What no engine checks by itself. */
export function isWanted({ model, channelId, code }: Rollup, filters: UsageFilters): boolean {
  return (filters.model ?? model) === model && (filters.channelId ?? channelId) === channelId && (filters.code ?? code) === code;
}
