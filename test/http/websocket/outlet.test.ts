/** The writer of a session: whoever waits for its client hears when more may follow, or that it is gone, however many wait. */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import type { WebSocket } from 'ws';
import { Outlet } from '../../../src/http/websocket/outlet.ts';
import { systemClock } from '../../../src/streams/clock.ts';
import { LoopTurns } from '../../../src/streams/loop-turns.ts';

/** A connection whose reader takes nothing until it is told to. */
class Connection extends EventEmitter {
  bufferedAmount = 0;
  isCut = false;
  readonly #untaken: (() => void)[] = [];
  send(text: string): void {
    this.bufferedAmount += text.length;
  }
  pong(_data: Buffer, _mask: boolean, onTaken: () => void): void {
    this.bufferedAmount += 2;
    this.#untaken.push(onTaken);
  }
  cork(): void {
    // What is written is counted at once.
  }
  uncork(): void {
    // As above.
  }
  terminate(): void {
    this.isCut = true;
  }
  /** The reader takes everything. */
  take(): void {
    this.bufferedAmount = 0;
    for (const onTaken of this.#untaken.splice(0)) onTaken();
    this.emit('drain');
  }
}

const MIB = 1024 * 1024;
const SHORT = 'x'.repeat(MIB / 2);
const LONG = 'y'.repeat(MIB + 1);

const WAYS = ['write', 'relay', 'long write', 'long relay', 'long send', 'take', 'turn'] as const;

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('every write settles, whatever else is written meanwhile and whenever the client leaves', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(...WAYS), { minLength: 1, maxLength: 12 }), async (ways) => {
      const connection = new Connection();
      const turns = new LoopTurns();
      const options = { clock: systemClock, turns, party: 'key', stallMs: 60_000 };
      const outlet = new Outlet(connection as unknown as WebSocket, connection as unknown as Socket, options);
      const writer = outlet.writer();
      let waiting = 0;
      const follow = (written: Promise<void> | undefined): void => {
        if (written === undefined) return;
        waiting += 1;
        const settled = (): void => {
          waiting -= 1;
        };
        written.then(settled, settled);
      };
      for (const way of ways) {
        if (way === 'write') follow(writer.write([SHORT, SHORT]));
        else if (way === 'relay') follow(outlet.relay(SHORT));
        else if (way === 'long write') follow(writer.write([LONG]));
        else if (way === 'long relay') follow(outlet.relay(LONG));
        else if (way === 'long send') outlet.send(LONG);
        else if (way === 'take') connection.take();
        else await turn();
      }
      outlet.close();
      for (let turns = 0; waiting > 0 && turns < 100; turns++) await turn();
      assert.equal(waiting, 0, 'somebody waits for a client that is gone');
      assert.equal(connection.listenerCount('drain') <= 1, true, 'one listener is enough for all');
    }),
  );
});

test('a client that only pings, with nothing in it, and reads nothing is let go by the number of its pongs', () => {
  const connection = new Connection();
  const options = { clock: systemClock, turns: new LoopTurns(), party: 'key', stallMs: 60_000 };
  const outlet = new Outlet(connection as unknown as WebSocket, connection as unknown as Socket, options);
  const ping = (count: number): void => {
    for (let index = 0; index < count && !connection.isCut; index++) outlet.pong(Buffer.alloc(0));
  };
  for (let round = 0; round < 10; round++) {
    ping(10_000);
    assert.equal(connection.isCut, false, 'one that reads may ping for ever');
    connection.take();
  }
  ping(20_000);
  assert.equal(connection.isCut, true);
});
