/** The order of a WebSocket session: one turn at a time, and nothing after the end. What a turn sends is not checked here. */
import { illegal as no, type Transitions } from '../../streams/lifecycle.ts';

/**
 * `busy`: a turn is being answered. `settling`: its last event was sent, so the client may send the next turn, but it is not
 * settled yet. `queued`: the next turn waits for that. `draining`: the running turn is the last. `leaving`: nothing is said any
 * more.
 */
export type SessionState = 'idle' | 'busy' | 'settling' | 'queued' | 'draining' | 'leaving' | 'closed';

/**
 * `turn`: a create or append was accepted. `ending`: the last event of the turn goes out. `settled`: nothing is left to do for
 * the turn.
 */
export type SessionEvent = 'turn' | 'ending' | 'settled' | 'drain' | 'close';

export const SESSION = {
  //          turn            ending              settled            drain              close
  idle: { turn: 'busy', ending: no, settled: no, drain: 'leaving', close: 'closed' },
  busy: { turn: no, ending: 'settling', settled: 'idle', drain: 'draining', close: 'closed' },
  settling: { turn: 'queued', ending: no, settled: 'idle', drain: 'leaving', close: 'closed' },
  queued: { turn: no, ending: no, settled: 'busy', drain: 'leaving', close: 'closed' },
  draining: { turn: no, ending: 'leaving', settled: 'leaving', drain: 'draining', close: 'closed' },
  leaving: { turn: no, ending: no, settled: 'leaving', drain: 'leaving', close: 'closed' },
  closed: { turn: no, ending: 'closed', settled: 'closed', drain: 'closed', close: 'closed' },
} as const satisfies Transitions<SessionState, SessionEvent>;
