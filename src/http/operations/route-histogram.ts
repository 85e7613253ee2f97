/**
 * A histogram by route for what is observed with every request or event. Prom-client's own makes an object of labels, a hash and
 * a check for each value; here it is a look into a map and two additions. The registry reads it like any other.
 */
import { Histogram } from 'prom-client';

interface Series {
  /** By bucket, each without those before it; the last are those above every bound. */
  readonly counts: number[];
  sum: number;
}

export interface RouteHistogramOptions {
  readonly name: string;
  readonly help: string;
  /** Upper bounds in seconds, inclusive and in order. */
  readonly buckets: number[];
}

/** To be registered by the caller. */
export class RouteHistogram extends Histogram<'route'> {
  readonly #options: RouteHistogramOptions;
  readonly #series = new Map<string, Series>();

  constructor(options: RouteHistogramOptions) {
    super({ ...options, labelNames: ['route'], registers: [] });
    this.#options = options;
  }

  add(route: string, seconds: number): void {
    const { buckets } = this.#options;
    let series = this.#series.get(route);
    if (series === undefined) {
      series = { counts: new Array<number>(buckets.length + 1).fill(0), sum: 0 };
      this.#series.set(route, series);
    }
    let at = 0;
    while (at < buckets.length && seconds > (buckets[at] ?? 0)) at += 1;
    series.counts[at] = (series.counts[at] ?? 0) + 1;
    series.sum += seconds;
  }

  /** What the registry reads, as text and as what workers send. */
  async getForPromString() {
    const { name, help } = this.#options;
    const values = [...this.#series].flatMap(([route, series]) => this.#valuesOf(route, series));
    return { name, help, type: 'histogram', aggregator: 'sum', values };
  }

  #valuesOf(route: string, { counts, sum }: Series) {
    const { name, buckets } = this.#options;
    const sharedLabels = { route };
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
