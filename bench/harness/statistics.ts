/** Medians and spreads, and the row that every suite reports. */

export interface Row {
  readonly suite: string;
  readonly name: string;
  readonly unit: string;
  readonly floor?: number;
  readonly subject: number;
  /** Median of the ratios of the rounds. */
  readonly ratio?: number;
  /** Median absolute deviation of the ratios. */
  readonly spread?: number;
  /** Median of subject minus floor. */
  readonly added?: number;
  readonly goal?: number;
  /** What the goal bounds; by default `added` where there is one, else `ratio`. */
  readonly goalIs?: 'subject';
  /** A point of a plotted series: its name and where it stands. */
  readonly series?: string;
  readonly at?: number;
}

export function percentile(ascending: readonly number[], share: number): number {
  return ascending[Math.min(ascending.length - 1, Math.floor(share * ascending.length))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  const ascending = [...values].sort((a, b) => a - b);
  const middle = ascending.length >> 1;
  return ascending.length % 2 === 1
    ? (ascending[middle] ?? Number.NaN)
    : ((ascending[middle - 1] ?? Number.NaN) + (ascending[middle] ?? Number.NaN)) / 2;
}

export function spread(values: readonly number[]): number {
  const center = median(values);
  return median(values.map((value) => Math.abs(value - center)));
}

export function held(row: Row): boolean | undefined {
  if (row.goal === undefined) return undefined;
  const value = row.goalIs === 'subject' ? row.subject : (row.added ?? row.ratio);
  return value === undefined ? undefined : value <= row.goal;
}
