/** Medians and spreads, and the rows that every suite reports. */

export interface Row {
  readonly suite: string;
  readonly name: string;
  readonly unit: string;
  readonly floor?: number;
  readonly subject: number;
  /** Median of the ratios of the rounds. */
  readonly ratio?: number;
  /** Median absolute deviation of the ratios (of the subject, where there is no floor). */
  readonly spread?: number;
  /** Median of subject minus floor. */
  readonly added?: number;
  readonly goal?: number;
  /** What the goal bounds; by default `added` where there is one, else `ratio`. */
  readonly goalIs?: 'subject';
  /** The goal bounds from below: more is better. */
  readonly atLeast?: true;
  /** A point of a plotted series: its name and where it stands. */
  readonly series?: string;
  readonly at?: number;
  /** Where several subjects did the same work: what it was, and whose figure this is. */
  readonly work?: string;
  readonly of?: string;
}

/** What names a row, and what it should reach. */
export type RowHead = Pick<Row, 'suite' | 'name' | 'unit' | 'goal' | 'goalIs' | 'atLeast'>;

/** Ratio of subject to floor round by round. */
export function ratioRow(head: RowHead, floor: readonly number[], subject: readonly number[]): Row {
  const ratios = subject.map((value, round) => value / (floor[round] ?? Number.NaN));
  return { ...head, floor: median(floor), subject: median(subject), ratio: median(ratios), spread: spread(ratios) };
}

/** What the subject adds to the floor, round by round. */
export function addedRow(head: RowHead, floor: readonly number[], subject: readonly number[]): Row {
  const added = subject.map((value, round) => value - (floor[round] ?? Number.NaN));
  return { ...head, floor: median(floor), subject: median(subject), added: median(added), spread: spread(added) };
}

/** A cost at several sizes, and as the last row the exponent that fits best (least squares on the logarithms): 1 is linear. */
export function seriesRows(
  { suite, name, unit }: Pick<Row, 'suite' | 'name' | 'unit'>,
  points: readonly { readonly at: number; readonly cost: number }[],
): Row[] {
  const rows = points.map(({ at, cost }): Row => ({ suite, name: `${name}: ${at}`, unit, subject: cost, series: name, at }));
  const subject = exponent(points);
  return [...rows, { suite, name: `${name}: exponent`, unit: '1 is linear', subject, goal: LINEAR, goalIs: 'subject' }];
}

/** The most that counts as linear: the young generation's collector and the caches of the processor have a say at large sizes. */
const LINEAR = 1.15;

export function exponent(points: readonly { readonly at: number; readonly cost: number }[]): number {
  const logs = points.map(({ at, cost }) => [Math.log(at), Math.log(cost)] as const);
  const mean = (pick: 0 | 1): number => logs.reduce((sum, pair) => sum + pair[pick], 0) / logs.length;
  const [x, y] = [mean(0), mean(1)];
  const [covariance, variance] = logs.reduce(
    ([both, own], [px, py]) => [both + (px - x) * (py - y), own + (px - x) ** 2] as const,
    [0, 0] as const,
  );
  return covariance / variance;
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

/** The figure that the goal is about. */
export function judged(row: Row): number | undefined {
  return row.goalIs === 'subject' ? row.subject : (row.added ?? row.ratio);
}

export function held(row: Row): boolean | undefined {
  const value = judged(row);
  if (row.goal === undefined || value === undefined) return undefined;
  return row.atLeast ? value >= row.goal : value <= row.goal;
}
