/**
 * Order as total tables: every state answers every event, so a missing cell does not compile and an illegal
 * move cannot be missed. Whose fault an illegal move is, the caller decides.
 */

/** A cell that must never be reached. */
export const illegal = null;

/** A total transition table: every state answers every event with the next state or `illegal`. */
export type Transitions<State extends string, Event extends string> = {
  readonly [S in State]: { readonly [E in Event]: State | typeof illegal };
};

/** An event that its table does not allow in this state. Blameless: the stage that meets it says whose fault it is. */
export class LifecycleError extends Error {
  override readonly name = 'LifecycleError';
  readonly subject: string;
  readonly state: string;
  readonly event: string;
  readonly legal: readonly string[];

  constructor(subject: string, state: string, event: string, legal: readonly string[]) {
    super(`${subject}: ${event} is illegal in state ${state} (legal: ${legal.join(', ') || 'nothing'})`);
    this.subject = subject;
    this.state = state;
    this.event = event;
    this.legal = legal;
  }
}

/** Anything total: each row names only states of the table itself, or `illegal`. */
type TableOf<T> = { readonly [S in keyof T]: Readonly<Record<string, (keyof T & string) | typeof illegal>> };

/** The state after `event`. Throws {@link LifecycleError}; the caller's state is then unchanged. */
export function advance<T extends TableOf<T>>(
  subject: string,
  table: T,
  state: keyof T & string,
  event: keyof T[keyof T] & string,
): keyof T & string {
  const row: Readonly<Record<string, (keyof T & string) | typeof illegal>> = table[state];
  const next = row[event];
  if (next === illegal || next === undefined) {
    const legal = Object.entries(row).filter(([, target]) => target !== illegal);
    throw new LifecycleError(
      subject,
      state,
      event,
      legal.map(([name]) => name),
    );
  }
  return next;
}
