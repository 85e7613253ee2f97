/**
 * The metrics of all workers as one: counters and histograms of workers that have ended stay in the sums, so that none ever
 * falls.
 */
import { AggregatorRegistry, type MetricObject } from 'prom-client';
import { isObject } from '../../codecs/canonical/json.ts';

/** A report as `getMetricsAsJSON` of the registry of a worker makes it, passed through the IPC channel. */
type Report = MetricObject[];

/** What only grows. A gauge is the state of a process now, and ends with the process. */
const GROWING: ReadonlySet<unknown> = new Set(['counter', 'histogram', 'summary']);

export class MetricSums {
  /** The latest report of each worker that lives. */
  readonly #latest = new Map<number, Report>();
  /** Of all workers that have ended. */
  #ended: Report = [];

  /** False when it is no report: nothing changes. */
  reported(worker: number, report: unknown): boolean {
    if (!isReport(report)) return false;
    this.#latest.set(worker, report);
    return true;
  }

  has(worker: number): boolean {
    return this.#latest.has(worker);
  }

  /** The worker is gone; what it reported last is kept. */
  async exited(worker: number): Promise<void> {
    const last = this.#latest.get(worker);
    if (last === undefined) return;
    this.#latest.delete(worker);
    const growing = last.filter(({ type }) => GROWING.has(type));
    // Both terms are in one list until the next report is read: no scrape in between sees a lower sum.
    const kept = [...this.#ended, ...growing];
    this.#ended = kept;
    const merged = await AggregatorRegistry.aggregate([kept]).getMetricsAsJSON();
    // Another worker may have ended meanwhile: its own merge has both.
    if (this.#ended === kept && isReport(merged)) this.#ended = merged;
  }

  /** In the text form of Prometheus. */
  async text(): Promise<{ readonly type: string; readonly text: string }> {
    const summed = AggregatorRegistry.aggregate([this.#ended, ...this.#latest.values()]);
    return { type: summed.contentType, text: await summed.metrics() };
  }
}

function isReport(value: unknown): value is Report {
  return Array.isArray(value) && value.every((metric) => isObject(metric) && typeof metric['name'] === 'string');
}
