/**
 * Order as total tables, for the records of this room (a hold, a video task). The store imports no other
 * room, so it has its own copy of the idea. An illegal event here is a refusal, returned to the caller, never an exception.
 */

/** A cell that must never be reached. */
export const illegal = null;

/** A total transition table: every state answers every event with the next state or `illegal`. */
export type Transitions<State extends string, Event extends string> = {
  readonly [S in State]: { readonly [E in Event]: State | typeof illegal };
};
