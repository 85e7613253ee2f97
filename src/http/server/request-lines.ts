/**
 * The requests of each connection of a listener that wait for their turn of the event loop. What a connection pipelines behind
 * {@link MOST_WAITING} of them is not read for as long: each takes a hundred times the bytes that it was asked in. Node itself
 * looks at the bytes of answers that wait, and there are none yet. Those that are being served are not counted: that a client has
 * left is seen only where it is read.
 */
import type { Socket } from 'node:net';
import type { LoopTurns } from '../../streams/loop-turns.ts';

const MOST_WAITING = 128;
/**
 * Where so many wait on other connections, one that has more waiting than it may is cut: one read may bring thousands before its
 * connection can be held, and a crowd of connections millions.
 */
const CROWD_WAITING = 4_096;
/** Where so many do, a connection that pipelines at all. */
const MOST_WAITING_IN_ALL = 65_536;

interface Line {
  waiting: number;
  /** Nobody is there who could be answered. */
  isCut: boolean;
  /** Set while the connection is not read. */
  pause?: (() => void) | undefined;
}

export class RequestLines {
  readonly #turns: LoopTurns;
  readonly #onCut: () => void;
  readonly #lines = new WeakMap<Socket, Line>();
  /** On all connections. */
  #waiting = 0;

  /** `onCut` hears of each connection that is cut. */
  constructor(turns: LoopTurns, onCut: () => void = () => undefined) {
    this.#turns = turns;
    this.#onCut = onCut;
  }

  /** Undefined where the request may be served at once. False where its connection was cut, for all that wait on it. */
  enter(socket: Socket): Promise<boolean> | undefined {
    const entered = this.#turns.enter(socket);
    return entered === undefined ? undefined : this.#wait(socket, entered);
  }

  async #wait(socket: Socket, entered: Promise<void>): Promise<boolean> {
    const line = this.#lines.get(socket) ?? { waiting: 0, isCut: false };
    this.#lines.set(socket, line);
    if (isTooMany(line.waiting, this.#waiting - line.waiting)) {
      line.isCut = true;
      this.#onCut();
      cutWhileReading(socket);
      return false;
    }
    line.waiting += 1;
    this.#waiting += 1;
    if (line.waiting > MOST_WAITING && line.pause === undefined) {
      // Node reads on at the end of each request, and for the body of one.
      const pause = (): void => void socket.pause();
      line.pause = pause;
      socket.on('resume', pause);
      pause();
    }
    await entered;
    line.waiting -= 1;
    this.#waiting -= 1;
    if (line.waiting > MOST_WAITING || line.pause === undefined) return !line.isCut;
    socket.off('resume', line.pause);
    line.pause = undefined;
    socket.resume();
    return !line.isCut;
  }
}

function isTooMany(here: number, elsewhere: number): boolean {
  if (here === 0 || elsewhere < CROWD_WAITING) return false;
  return here >= MOST_WAITING || elsewhere >= MOST_WAITING_IN_ALL;
}

const asIfUpgraded = (): number => 2;

/**
 * Destroys a connection in the middle of a read. Node would go on and make a request of each that the read holds, and an error
 * with a stack for each of these when the connection is closed: a hundred times what it costs to send them. Its parser takes 2
 * for a change of protocol, and stops. Were that not there, in another version of Node, it would only take longer.
 */
function cutWhileReading(socket: Socket & { parser?: { onIncoming?: () => number } | null }): void {
  if (socket.parser?.onIncoming) socket.parser.onIncoming = asIfUpgraded;
  socket.destroy();
}
