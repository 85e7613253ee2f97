/**
 * The films that were ordered while the gateway was killed again and again: each held once, closed at most once, submitted at
 * most once.
 */
import { randomBytes } from 'node:crypto';
import type { Store } from '../../../src/store/store.ts';
import type { VideoTask } from '../../../src/store/videos.ts';
import type { CrashReport } from './crash-lane.ts';

interface Film {
  readonly marker: string;
  /** Known once a 202 came. */
  id?: string;
  submissions: number;
  ended?: VideoTask['state'];
}

const PRICE = 1_000n;
const OPEN: ReadonlySet<VideoTask['state']> = new Set(['queued', 'submitting', 'running']);

export class VideoLedger {
  readonly #report: CrashReport;
  readonly #films = new Map<string, Film>();
  /** Orders whose answer was lost: asked again with the same key. */
  #unanswered: Film[] = [];

  constructor(report: CrashReport) {
    this.#report = report;
  }

  async client(url: string, secret: string, stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      const film = this.#unanswered.pop() ?? this.#order();
      try {
        await this.#ask(url, secret, film);
        // Sometimes the client is not sure: the same key again is the same task.
        if (this.#films.size % 4 === 0) await this.#ask(url, secret, film);
        await new Promise((resolve) => setTimeout(resolve, 5));
      } catch (error) {
        if (!(error instanceof Error)) throw error;
        if (film.id === undefined) this.#unanswered.push(film);
        return;
      }
    }
  }

  #order(): Film {
    const outcome = this.#films.size % 3 === 2 ? 'fails' : 'works';
    const film: Film = { marker: `film-${outcome}-${randomBytes(6).toString('hex')}`, submissions: 0 };
    this.#films.set(film.marker, film);
    return film;
  }

  async #ask(url: string, secret: string, film: Film): Promise<void> {
    const response = await fetch(`${url}/v1/videos`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'idempotency-key': film.marker },
      body: JSON.stringify({ model: 'film', prompt: film.marker, duration: 5 }),
    });
    const text = await response.text();
    if (response.status !== 202) {
      this.#report.violations.push(`${film.marker}: ${response.status} ${text}`);
      return;
    }
    const { id } = JSON.parse(text) as { id: string };
    if (film.id !== undefined && film.id !== id)
      this.#report.violations.push(`${film.marker}: the same key made ${film.id} and ${id}`);
    film.id = id;
  }

  /** The upstream was given this film. */
  submitted(marker: string): void {
    const film = this.#films.get(marker);
    if (film !== undefined) film.submissions += 1;
  }

  async check(store: Store): Promise<void> {
    const { violations } = this.#report;
    for (const film of this.#films.values()) {
      if (film.submissions > 1) violations.push(`${film.marker}: submitted ${film.submissions} times`);
      if (film.id === undefined) continue;
      const task = await store.videos.inspect(film.id);
      if (task === undefined) {
        violations.push(`${film.marker}: a 202 was answered and the task is gone`);
        continue;
      }
      if (film.ended !== undefined && film.ended !== task.state)
        violations.push(`${film.marker}: was ${film.ended} and is ${task.state}`);
      if (task.state === 'succeeded' || task.state === 'failed') film.ended = task.state;
      if (film.submissions > 0 && task.state === 'queued') violations.push(`${film.marker}: submitted, and still queued`);
      if (task.state === 'succeeded' && film.submissions !== 1) violations.push(`${film.marker}: succeeded without a submission`);
    }
  }

  /** Waits until every task has ended or is unknown, then counts them, with what the journal says of each. */
  async settle(store: Store): Promise<void> {
    const deadline = Date.now() + 60_000;
    let tasks = await store.videos.all({ limit: 1_000 });
    while (tasks.some(({ state }) => OPEN.has(state)) && Date.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      tasks = await store.videos.all({ limit: 1_000 });
    }
    const report = this.#report;
    for (const film of this.#films.values()) report.submitted += film.submissions;
    for (const task of await allTasks(store)) {
      report.tasks += 1;
      if (task.state === 'succeeded' || task.state === 'failed' || task.state === 'unknown') report[task.state] += 1;
      else report.violations.push(`${task.id} is still ${task.state}`);
      const kinds = (await store.ledger.journal({ ref: task.id })).map(({ kind }) => kind);
      const closed = { succeeded: 'hold settle', failed: 'hold refund', unknown: 'hold keep' }[task.state as 'failed'] ?? '?';
      // A task that was unclear for a while has that in its journal, too.
      const said = kinds.filter((kind) => kind !== 'keep' || task.state === 'unknown').join(' ');
      if (said !== closed) report.violations.push(`${task.id} is ${task.state}, its journal says ${kinds.join(' ')}`);
    }
  }

  async settledNanos(store: Store): Promise<bigint> {
    const settled = await store.ledger.holds({ state: 'settled' });
    return BigInt(settled.length) * PRICE;
  }
}

async function allTasks(store: Store): Promise<VideoTask[]> {
  const holds = await store.ledger.holds();
  const tasks = await Promise.all(holds.map(({ id }) => store.videos.inspect(id)));
  return tasks.filter((task) => task !== undefined);
}
