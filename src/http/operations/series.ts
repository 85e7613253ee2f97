/**
 * Series of metrics that are kept by whoever counts. Prom-client's own counters and histograms make an object of labels, a hash
 * and a check for each value; here a value is a look into a map and an addition. The registry reads them like any other.
 */
import { Counter, type CounterConfiguration, Gauge, Histogram, type Registry } from 'prom-client';

/** A series of a counter or a gauge. */
export interface Tally {
  value: number;
}

type Labels<Name extends string> = Readonly<Record<Name, string | number>>;

export interface TallyOptions<Name extends string> {
  readonly registry: Registry;
  readonly type: 'counter' | 'gauge';
  readonly name: string;
  readonly help: string;
  readonly labels: readonly Name[];
}

/** A metric of tallies. Gives a new series of it: one for each set of labels, which the caller keeps ({@link kept}). */
export function tallies<Name extends string>(options: TallyOptions<Name>): (labels: Labels<Name>) => Tally {
  const { registry, type, name, help } = options;
  const series: { readonly labels: Labels<Name>; readonly tally: Tally }[] = [];
  const metric: CounterConfiguration<Name> = {
    ...{ name, help, labelNames: options.labels, registers: [registry] },
    collect() {
      this.reset();
      for (const { labels, tally } of series) this.inc(labels, tally.value);
    },
  };
  if (type === 'counter') new Counter(metric);
  else new Gauge(metric);
  return (labels) => {
    const tally = { value: 0 };
    series.push({ labels, tally });
    return tally;
  };
}

/** What `make` makes of each key, made with its first use. Keys are few: routes, Channels, models, our own codes. */
export function kept<Key, Value>(make: (key: Key) => Value): (key: Key) => Value {
  const made = new Map<Key, Value>();
  return (key) => {
    let value = made.get(key);
    if (value === undefined) {
      value = make(key);
      made.set(key, value);
    }
    return value;
  };
}

export interface HistogramOptions<Name extends string> {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly Name[];
  /** Upper bounds in seconds, inclusive and in order. */
  readonly buckets: number[];
}

/** To be registered by the caller. */
export class SeriesHistogram<Name extends string> extends Histogram<Name> {
  readonly #options: HistogramOptions<Name>;
  readonly #series: { readonly labels: Labels<Name>; readonly seconds: Seconds }[] = [];

  constructor(options: HistogramOptions<Name>) {
    const { name, help, buckets, labels } = options;
    super({ name, help, buckets, labelNames: [...labels], registers: [] });
    this.#options = options;
  }

  /** A new series: one for each set of labels, which the caller keeps ({@link kept}). */
  series(labels: Labels<Name>): Seconds {
    const seconds = new Seconds(this.#options.buckets);
    this.#series.push({ labels, seconds });
    return seconds;
  }

  /** What the registry reads, as text and as what workers send. */
  async getForPromString() {
    const { name, help } = this.#options;
    const values = this.#series.flatMap(({ labels, seconds }) => this.#valuesOf(labels, seconds));
    return { name, help, type: 'histogram', aggregator: 'sum', values };
  }

  #valuesOf(sharedLabels: Labels<Name>, { counts, sum }: Seconds) {
    const { name, buckets } = this.#options;
    let below = 0;
    const bounded = [...buckets, '+Inf'].map((le, at) => {
      below += counts[at] ?? 0;
      return { metricName: `${name}_bucket`, labels: { le }, sharedLabels, value: below };
    });
    return [
      ...bounded,
      { metricName: `${name}_sum`, labels: {}, sharedLabels, value: sum },
      { metricName: `${name}_count`, labels: {}, sharedLabels, value: below },
    ];
  }
}

/** A series of a histogram. */
export class Seconds {
  readonly #buckets: readonly number[];
  /** By bucket, each without those before it; the last are those above every bound. */
  readonly counts: number[];
  sum = 0;

  constructor(buckets: readonly number[]) {
    this.#buckets = buckets;
    this.counts = new Array<number>(buckets.length + 1).fill(0);
  }

  add(seconds: number): void {
    const buckets = this.#buckets;
    let at = 0;
    while (at < buckets.length && seconds > (buckets[at] ?? 0)) at += 1;
    this.counts[at] = (this.counts[at] ?? 0) + 1;
    this.sum += seconds;
  }
}
