/**
 * Sums of exchanges and videos by UTC hour × account × key × model × Channel × error code, written in the transaction that logs
 * or settles them, so that a month is a query of milliseconds. Beside each row of an hour stand the row of its day, and the rows
 * of both for all keys together. Pure; shared by every engine.
 */
import { type DayCounts, NO_USAGE } from './day-usage.ts';
import type { RequestLogEntry } from './request-log.ts';
import { storable } from './storable.ts';

export const HOUR_MS = 3_600_000;
export const HOURS_A_DAY = 24;

export const hourOf = (ms: number): number => Math.floor(ms / HOUR_MS);

/** Upper bounds of the buckets of the first-token histogram, in milliseconds; one more bucket is above the last. */
export const FIRST_TOKEN_BOUNDS_MS: readonly number[] = [
  25, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1_000, 1_500, 2_000, 3_000, 4_000, 5_000, 7_500, 10_000, 15_000, 20_000, 30_000,
  60_000, 120_000,
];
export const FIRST_TOKEN_BUCKETS = FIRST_TOKEN_BOUNDS_MS.length + 1;

/** The counts of a sum, in the order in which engines keep them. A new one goes to the end. */
export const SUM_NAMES = [
  'requests',
  'inputTokens',
  'cachedInputTokens',
  'cacheWriteTokens',
  'outputTokens',
  'reasoningTokens',
  'images',
  'videos',
  'durationMs',
] as const;
export type SumName = (typeof SUM_NAMES)[number];

/** `durationMs`: over all requests. `firstToken`: how many answers began within each bound, and not within the one before. */
export type UsageSums = { -readonly [Name in SumName]: number } & { chargedNanos: bigint; readonly firstToken: number[] };

/** Where a sum stands. Of all keys together `keyId` and `accountId` are empty. `at`: the hour, or the day, since the epoch. */
export interface RollupPlace {
  readonly keyId: string;
  readonly at: number;
  /**
   * Empty for a request that was refused before any Channel was asked: what it asks for are a client's words, and have no end.
   */
  readonly model: string;
  /** The Channel that answered, or that was asked last; empty where none was. */
  readonly channelId: string;
  /** Empty for a success, `interrupted` where the gateway died. */
  readonly code: string;
}

export interface Rollup extends RollupPlace {
  readonly accountId: string;
  readonly sums: UsageSums;
}

export type UsageDimension = 'hour' | 'day' | 'account' | 'key' | 'model' | 'channel' | 'code';

/** Whole UTC hours: those that begin before `toMs` and end after `fromMs`. */
export interface UsageRange {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface UsageFilters {
  readonly accountId?: string;
  readonly keyId?: string;
  readonly model?: string;
  readonly channelId?: string;
  readonly code?: string;
}

/** One group: the members that it was grouped by, and its sums. Groups without anything in them are absent. */
export interface UsageGroup extends Readonly<Omit<UsageSums, 'firstToken'>> {
  /** When it begins, milliseconds since the epoch. */
  readonly hour?: number;
  /** `2026-03-01` */
  readonly day?: string;
  readonly accountId?: string;
  readonly keyId?: string;
  readonly model?: string;
  readonly channelId?: string;
  readonly code?: string;
  /** Of `requests`: those with an error code. */
  readonly errors: number;
  /** Counts by {@link FIRST_TOKEN_BOUNDS_MS}. */
  readonly firstToken: readonly number[];
}

export interface RebuiltRollups {
  /** Hours that have rows. */
  readonly hours: number;
  /** Hours up to this one (its beginning, milliseconds) were kept as they are: rows of theirs were pruned. */
  readonly keptUntilMs?: number;
}

/**
 * Groups are ordered by their members, in the order hour, day, account, key, model, Channel, code. A month grouped by day reads
 * sums of days; grouped by hour it reads those of hours.
 */
export type UsageByHour = (
  range: UsageRange,
  filters?: UsageFilters,
  groupBy?: readonly UsageDimension[],
) => Promise<UsageGroup[]>;

const MAX_WORDS = 256;
const word = (words: string): string => storable(words.slice(0, MAX_WORDS));

export function noSums(): UsageSums {
  return { ...NO_USAGE, durationMs: 0, firstToken: [] };
}

export function addSums(sums: UsageSums, more: Omit<UsageSums, 'firstToken'> & { readonly firstToken: readonly number[] }): void {
  for (const name of SUM_NAMES) sums[name] += more[name];
  sums.chargedNanos += more.chargedNanos;
  for (const [bucket, count] of more.firstToken.entries()) if (count !== 0) addFirstToken(sums, bucket, count);
}

export function isNothing(sums: UsageSums): boolean {
  return sums.chargedNanos === 0n && SUM_NAMES.every((name) => sums[name] === 0) && sums.firstToken.every((count) => count === 0);
}

function addFirstToken({ firstToken }: UsageSums, bucket: number, count: number): void {
  while (firstToken.length <= bucket) firstToken.push(0);
  firstToken[bucket] = (firstToken[bucket] ?? 0) + count;
}

function bucketOf(ms: number): number {
  const bucket = FIRST_TOKEN_BOUNDS_MS.findIndex((bound) => ms <= bound);
  return bucket < 0 ? FIRST_TOKEN_BOUNDS_MS.length : bucket;
}

/**
 * The time within which `share` (0 to 1) of the answers began, interpolated inside its bucket; undefined where nothing was
 * counted. What is above the last bound counts as that bound.
 */
export function firstTokenMs(counts: readonly number[], share: number): number | undefined {
  const all = counts.reduce((sum, count) => sum + count, 0);
  if (all === 0) return undefined;
  let below = 0;
  for (const [bucket, count] of counts.entries()) {
    if (count > 0 && below + count >= share * all) {
      const [low, high] = [FIRST_TOKEN_BOUNDS_MS[bucket - 1] ?? 0, FIRST_TOKEN_BOUNDS_MS[bucket]];
      return high === undefined ? low : low + ((high - low) * Math.max(0, share * all - below)) / count;
    }
    below += count;
  }
  return FIRST_TOKEN_BOUNDS_MS.at(-1);
}

/** The sums that a transaction, or a recount, adds. */
export class RollupChanges {
  readonly #hours = new Map<string, Rollup>();
  readonly #distinctHours = new Set<number>();

  /** `atMs`: when the row was logged. `sign` -1 takes back what an earlier row of the exchange added. */
  exchange(entry: RequestLogEntry, counts: Partial<DayCounts>, atMs: number, sign: 1 | -1 = 1): void {
    const { attempts, status, channelId = attempts.at(-1)?.channelId ?? '' } = entry;
    const asked = status !== 'error' || attempts.length > 0;
    const code = status === 'success' ? '' : status === 'interrupted' ? status : (entry.errorCode ?? 'error');
    const { sums } = this.#at(entry, hourOf(atMs), asked ? entry.model : '', channelId, code);
    sums.requests += sign;
    sums.inputTokens += sign * (counts.inputTokens ?? 0);
    sums.cachedInputTokens += sign * (counts.cachedInputTokens ?? 0);
    sums.cacheWriteTokens += sign * (counts.cacheWriteTokens ?? 0);
    sums.outputTokens += sign * (counts.outputTokens ?? 0);
    sums.reasoningTokens += sign * (counts.reasoningTokens ?? 0);
    sums.images += sign * (counts.images ?? 0);
    const { charge, durationMs, firstOutputMs } = entry;
    if (charge !== undefined) sums.chargedNanos += sign === 1 ? charge.total : -charge.total;
    if (status === 'interrupted') return;
    sums.durationMs += sign * Math.max(0, Math.round(durationMs));
    if (status === 'success' && firstOutputMs !== undefined) addFirstToken(sums, bucketOf(firstOutputMs), sign);
  }

  /** A video that was paid for. */
  video(video: SettledVideo): void {
    const { sums } = this.#at(video, hourOf(video.atMs), video.model, video.channelId ?? '', '');
    sums.videos += 1;
    sums.chargedNanos += video.nanos;
  }

  /** The row of an hour. */
  add(rollup: Rollup): void {
    addSums(this.#at(rollup, rollup.at, rollup.model, rollup.channelId, rollup.code).sums, rollup.sums);
  }

  get isEmpty(): boolean {
    return this.#hours.size === 0;
  }

  /** By key. */
  hours(): MapIterator<Rollup> {
    return this.#hours.values();
  }

  /** Of all keys together. */
  hoursOfAll(): RollupChanges {
    const all = new RollupChanges();
    for (const rollup of this.#hours.values()) all.add({ ...rollup, keyId: '', accountId: '' });
    return all;
  }

  /** The same rows by day. What a batch adds is mostly of one hour: then each is one of the day, too, and shares its sums. */
  days(): Iterable<Rollup> {
    const byDay = (rollup: Rollup): Rollup => ({ ...rollup, at: Math.floor(rollup.at / HOURS_A_DAY) });
    if (this.#distinctHours.size === 1) return this.hours().map(byDay);
    const days = new RollupChanges();
    for (const rollup of this.hours()) days.add(byDay(rollup));
    return days.hours();
  }

  #at(owner: { keyId: string; accountId: string }, at: number, model: string, channel: string, code: string): Rollup {
    const { keyId, accountId } = owner;
    const name = `${keyId}\n${at}\n${model}\n${channel}\n${code}`;
    let rollup = this.#hours.get(name);
    if (rollup === undefined) {
      rollup = { keyId, accountId, at, model: word(model), channelId: word(channel), code: word(code), sums: noSums() };
      this.#hours.set(name, rollup);
      this.#distinctHours.add(at);
    }
    return rollup;
  }
}

export interface SettledVideo {
  readonly accountId: string;
  readonly keyId: string;
  readonly model: string;
  readonly channelId?: string | undefined;
  readonly nanos: bigint;
  readonly atMs: number;
}

/** The name of a place, for comparing. */
export function placeText({ keyId, at, model, channelId, code }: RollupPlace): string {
  return JSON.stringify([keyId, at, model, channelId, code]);
}

/** Sums as text, for comparing: empty buckets at the end are left out. */
export function sumsText(sums: UsageSums): string {
  const firstToken = [...sums.firstToken];
  while (firstToken.at(-1) === 0) firstToken.pop();
  return JSON.stringify([...SUM_NAMES.map((name) => sums[name]), sums.chargedNanos.toString(), firstToken]);
}
