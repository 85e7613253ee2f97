/**
 * Who asks and does not read. A long answer is watched by whoever writes it; short ones need it only where the connection holds
 * many: requests that are pipelined have all their answers in memory until the first is read.
 */
import type { ServerResponse } from 'node:http';
import type { Clock } from '../../streams/clock.ts';
import { StallWatch, unsentBytes } from '../../streams/stall-watch.ts';
import type { Config } from '../config/config.ts';

/** From its end on: cuts the connection where nothing of the answer is taken for as long as any answer may wait. */
export function watchUnread(response: ServerResponse, clock: Clock, config: () => Config): void {
  // Its turn has come on its connection, and the last of it was given to that.
  response.once('prefinish', () => {
    const { socket } = response;
    const unsent = (): number | undefined => unsentBytes(response, socket);
    if (unsent() === 0) return;
    const watch = new StallWatch(clock, longestStallMs(config()), unsent, () => response.destroy());
    watch.start();
    response.once('close', () => watch.stop());
  });
}

function longestStallMs({ writeStallMs, channels }: Config): number {
  return channels.reduce((longest, { timeouts }) => Math.max(longest, timeouts.writeStallMs), writeStallMs);
}
