/** The order of a WebSocket session: one turn at a time, and nothing after the end. What a turn says is the pipeline's business. */
import { illegal as no, type Transitions } from '../../streams/lifecycle.ts';

/**
 * `busy`: a turn is being answered. `settling`: its ending was said, so a client may send the next one, but its books are not closed
 * yet. `queued`: that next one waits for it. `leaving`: no turn is begun any more.
 */
export type SessionState = 'idle' | 'busy' | 'settling' | 'queued' | 'leaving' | 'closed';

/** `turn`: a create or append was accepted. `said`: the ending went out. `over`: nothing is left to do for the running turn. */
export type SessionEvent = 'turn' | 'said' | 'over' | 'leave' | 'close';

export const SESSION = {
  //          turn            said              over            leave             close
  idle: { turn: 'busy', said: no, over: no, leave: 'leaving', close: 'closed' },
  busy: { turn: no, said: 'settling', over: 'idle', leave: 'leaving', close: 'closed' },
  settling: { turn: 'queued', said: no, over: 'idle', leave: 'leaving', close: 'closed' },
  queued: { turn: no, said: no, over: 'busy', leave: 'leaving', close: 'closed' },
  leaving: { turn: no, said: 'leaving', over: 'leaving', leave: 'leaving', close: 'closed' },
  closed: { turn: no, said: 'closed', over: 'closed', leave: 'closed', close: 'closed' },
} as const satisfies Transitions<SessionState, SessionEvent>;
