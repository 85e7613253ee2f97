/** Ports of processes that cannot choose their own, and whether somebody answers there yet. */
import { get } from 'node:http';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const PAUSE_MS = 5;
const PATIENCE_MS = 15_000;

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/**
 * Until `url` answers a GET with one of `statuses` (any at all, if none is named). Throws `why()` when the process is gone or
 * takes too long.
 */
export async function answering(
  url: string,
  gone: () => boolean,
  why: () => string,
  statuses?: readonly number[],
): Promise<void> {
  for (let waited = 0; !(await answers(url, statuses)); waited += PAUSE_MS) {
    if (gone() || waited > PATIENCE_MS) throw new Error(why());
    await sleep(PAUSE_MS);
  }
}

function answers(url: string, statuses: readonly number[] | undefined): Promise<boolean> {
  return new Promise((resolve) => {
    get(url, (answer) => {
      const { statusCode = 0 } = answer.resume();
      resolve(statuses?.includes(statusCode) ?? true);
    }).on('error', () => resolve(false));
  });
}
