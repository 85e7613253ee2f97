/** Plays a plan onto a socket at its pace. Knows time and back-pressure; knows no content. */
import type { ServerResponse } from 'node:http';
import type { Action, Plan } from './faults.ts';
import type { AnswerState } from './journal.ts';
import type { Pace } from './script.ts';

/** Resolves when the answer is over: written, cut, or left by its caller. Never rejects. */
export async function play(response: ServerResponse, plan: Plan, pace: Pace): Promise<AnswerState> {
  const gone = goneSignal(response);
  await pause(plan.beforeHeadersMs, gone);
  if (plan.silent) await forever(gone);
  if (gone.aborted) return 'left';
  response.writeHead(plan.status, plan.headers);
  response.flushHeaders();
  await pause(pace.firstMs ?? 0, gone);
  const { ms = 0, cut = 'event' } = pace;
  const actions = recut(plan.actions, cut);
  let first = true;
  for (const action of actions) {
    if (gone.aborted) return 'left';
    switch (action.do) {
      case 'write':
        if (!first) await between(ms, gone);
        first = false;
        if (gone.aborted) return 'left';
        if (!response.write(action.bytes)) await drained(response, gone);
        break;
      case 'wait':
        await pause(action.ms, gone);
        break;
      case 'stall':
        await forever(gone);
        return 'left';
      case 'cut':
        // What was written must reach the peer before the reset.
        await between(5, gone);
        response.socket?.destroy();
        return 'cut';
    }
  }
  if (gone.aborted) return 'left';
  await new Promise<void>((resolve) => {
    gone.addEventListener('abort', () => resolve(), { once: true });
    response.end(resolve);
  });
  return response.writableFinished ? 'ended' : 'left';
}

/** Aborted when the connection closes before the answer is finished. */
function goneSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  response.once('close', () => controller.abort());
  if (response.destroyed || response.socket?.destroyed === true) controller.abort();
  return controller.signal;
}

function recut(actions: readonly Action[], cut: NonNullable<Pace['cut']>): readonly Action[] {
  if (cut === 'event') return actions;
  const made: Action[] = [];
  let run: Buffer[] = [];
  const flush = () => {
    const bytes = Buffer.concat(run);
    run = [];
    const size = cut === 'packet' ? bytes.length : Math.max(1, cut);
    for (let at = 0; at < bytes.length; at += size) made.push({ do: 'write', bytes: bytes.subarray(at, at + size) });
  };
  for (const action of actions) {
    if (action.do === 'write') {
      run.push(action.bytes);
      continue;
    }
    flush();
    made.push(action);
  }
  flush();
  return made;
}

async function pause(ms: number, gone: AbortSignal): Promise<void> {
  if (ms > 0) await between(ms, gone);
}

function between(ms: number, gone: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (gone.aborted) return resolve();
    if (ms === 0) {
      setImmediate(resolve);
      return;
    }
    const timer = setTimeout(done, ms);
    function done(): void {
      clearTimeout(timer);
      gone.removeEventListener('abort', done);
      resolve();
    }
    gone.addEventListener('abort', done, { once: true });
  });
}

function forever(gone: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (gone.aborted) return resolve();
    gone.addEventListener('abort', () => resolve(), { once: true });
  });
}

function drained(response: ServerResponse, gone: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done);
      gone.removeEventListener('abort', done);
      resolve();
    };
    response.once('drain', done);
    gone.addEventListener('abort', done, { once: true });
  });
}
