/** Rows as they come, as server-sent events: `exchanges` with a list of rows, `skipped` with how many were passed over. */
import type { ServerResponse } from 'node:http';
import type { Clock } from '../../streams/clock.ts';
import { SAFE_HEADERS } from '../server/safe-headers.ts';
import { jsonText } from './json-text.ts';
import type { LiveBatch } from './routes.ts';

const HEARTBEAT_MS = 15_000;
/** Who takes nothing for this long is cut: the places are few, and nobody looks meanwhile whether the token is still there. */
const UNREAD_MS = 60_000;

export interface Listener {
  readonly clock: Clock;
  /** Aborted when the one who asked has left. */
  readonly gone: AbortSignal;
  /** Whether the one who asked may still read. */
  readonly lasts: () => Promise<boolean>;
}

/** Takes the next batch only when the last one was written: whoever reads slowly is shown fewer rows, and told so. */
export async function writeEvents(
  response: ServerResponse,
  batches: AsyncIterable<LiveBatch>,
  { clock, gone, lasts }: Listener,
): Promise<void> {
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
    ...Object.fromEntries(SAFE_HEADERS),
  });
  // The page knows that it is connected before the first row comes.
  response.write(': connected\n\n');
  let beatAtMs = clock.monotonic();
  for await (const { rows, cursor, skipped } of batches) {
    if (gone.aborted || !(await lasts())) break;
    const now = clock.monotonic();
    let text = skipped > 0 ? `event: skipped\ndata: {"count":${skipped}}\n\n` : '';
    if (rows.length > 0) text += `id: ${cursor}\nevent: exchanges\ndata: ${jsonText(rows)}\n\n`;
    if (text === '' && now - beatAtMs >= HEARTBEAT_MS) text = ': alive\n\n';
    if (text === '') continue;
    beatAtMs = now;
    if (response.write(text) || (await drained(response, gone, clock))) continue;
    response.destroy();
    return;
  }
  response.end();
}

/** False where nobody read it in time. */
function drained(response: ServerResponse, gone: AbortSignal, clock: Clock): Promise<boolean> {
  return new Promise((resolve) => {
    const over = (isRead: boolean): void => {
      timer.cancel();
      response.off('drain', onDrain);
      gone.removeEventListener('abort', onDrain);
      resolve(isRead);
    };
    const onDrain = (): void => over(true);
    const timer = clock.setTimeout(() => over(false), UNREAD_MS);
    response.on('drain', onDrain);
    gone.addEventListener('abort', onDrain);
    if (gone.aborted) onDrain();
  });
}
