/** A row of the settlement queue: what is to be written, who waits for it, and where in the log it is kept meanwhile. */
import type { RequestLogEntry } from '../request-log.ts';
import type { OpenExchange, Settled } from '../settlement.ts';
import type { Deferred } from './deferred.ts';
import type { Segment } from './segment.ts';

/** One exchange: to be opened, to be settled, both (which writes the settlement alone), or to be closed as interrupted. */
export class QueueRow {
  readonly exchangeId: string;
  exchange: OpenExchange | undefined;
  entry: RequestLogEntry | undefined;
  /** The entry as the engine keeps it. */
  text: string | undefined;
  /** It was found opened and never settled in the log of a dead process. */
  isInterrupted = false;
  /** Gives the reservation back: the engine has the charge, or it is lost for good. */
  release: (() => void) | undefined;
  opened: Deferred<void> | undefined;
  settled: Deferred<Settled> | undefined;
  /** The files that hold its opening and its settlement. */
  openedIn: Segment | undefined;
  settledIn: Segment | undefined;
  /** What it is now is on the local disk. */
  isKept = false;
  /** Whoever waits, waits for the disk: for no less (an opening), and not for the engine's answer (a settlement). */
  isStrict = false;
  /** The engine has it, or it is lost. */
  isDone = false;

  constructor(exchangeId: string) {
    this.exchangeId = exchangeId;
  }

  get isLogged(): boolean {
    return (this.entry === undefined ? this.openedIn : this.settledIn) !== undefined;
  }

  /** It is on the local disk. */
  keep(): void {
    this.isKept = true;
    this.opened?.resolve();
    if (this.isStrict) this.answerKept();
  }

  resolve(settled: Settled | undefined): void {
    this.isDone = true;
    this.release?.();
    this.opened?.resolve();
    if (settled !== undefined) this.settled?.resolve(settled);
  }

  /** Tells whoever waits what the engine will most likely answer; the row itself waits on. */
  answerKept(): void {
    this.opened?.resolve();
    this.settled?.resolve({ settled: true, chargedNanos: this.entry?.charge?.total ?? 0n });
  }

  reject(error: unknown): void {
    this.isDone = true;
    this.release?.();
    this.opened?.reject(error);
    this.settled?.reject(error);
  }
}
