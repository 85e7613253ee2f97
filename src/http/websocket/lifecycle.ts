/** The order of a WebSocket session: one turn at a time, and nothing after the end. What a turn sends is not checked here. */
import { illegal as no, type Transitions } from '../../streams/lifecycle.ts';

/**
 * `busy`: a turn is being answered. `settling`: its last event was sent, so the client may send the next turn, but it is not
 * settled yet. `queued`: the next turn waits for that. `draining`: no further turn is begun.
 */
export type SessionState = 'idle' | 'busy' | 'settling' | 'queued' | 'draining' | 'closed';

/**
 * `turn`: a create or append was accepted. `ending`: the last event of the turn goes out. `settled`: nothing is left to do for
 * the turn.
 */
export type SessionEvent = 'turn' | 'ending' | 'settled' | 'drain' | 'close';

export const SESSION = {
  //          turn            ending              settled            drain              close
  idle: { turn: 'busy', ending: no, settled: no, drain: 'draining', close: 'closed' },
  busy: { turn: no, ending: 'settling', settled: 'idle', drain: 'draining', close: 'closed' },
  settling: { turn: 'queued', ending: no, settled: 'idle', drain: 'draining', close: 'closed' },
  queued: { turn: no, ending: no, settled: 'busy', drain: 'draining', close: 'closed' },
  draining: { turn: no, ending: 'draining', settled: 'draining', drain: 'draining', close: 'closed' },
  closed: { turn: no, ending: 'closed', settled: 'closed', drain: 'closed', close: 'closed' },
} as const satisfies Transitions<SessionState, SessionEvent>;
