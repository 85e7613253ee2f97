/**
 * Body, sealed stage and response joined by one loop instead of Web Streams. Law: the same bytes as `bodySource(body).pipeThrough(seal(
 * stage)).pipeTo(sinkTo(response))`, endings, cancel and back-pressure included. A paced stream (one event a read) costs far less so.
 */
import type { Readable, Writable } from 'node:stream';
import { type BodyReader, type BodySourceOptions, readBody } from './body-source.ts';
import { createResponseWriter, type ResponseWriterOptions } from './response-writer.ts';
import { type Sealed, sealed } from './seal.ts';
import type { SealingStage } from './stage.ts';
import { StreamError } from './stream-error.ts';

export interface PumpOptions<F> extends ResponseWriterOptions, BodySourceOptions {
  readonly toFailure: (reason: unknown) => F;
  /** The dialect's constant error frame, said before the connection is cut should `fail` itself throw. */
  readonly lastWords?: readonly string[];
}

/**
 * Resolves when the response has ended, be it in words of failure. Rejects when the client left or stalled (the body is then destroyed
 * at once), and when `fail` broke its contract (the connection is then cut).
 */
export async function pump<F>(
  body: Readable,
  stage: SealingStage<Uint8Array, string, F>,
  response: Writable,
  options: PumpOptions<F>,
): Promise<void> {
  const source = readBody(body, options.drain);
  const step = sealed(stage, options.toFailure);
  const finish = (): void => source.finish();
  options.endSignal?.addEventListener('abort', finish, { once: true });
  if (options.endSignal?.aborted) finish();
  let gone: StreamError | undefined;
  const writer = createResponseWriter(response, {
    ...options,
    onGone(reason) {
      gone = reason;
      source.cancel(reason);
      options.onGone?.(reason);
    },
  });

  try {
    while (!step.over) {
      // Nobody is left to hear the words of a failure that is only our own cancel.
      if (gone !== undefined) throw gone;
      const words: string[] = [];
      try {
        if (!read(source, step, words, options)) {
          await source.wait();
          continue;
        }
      } catch (broken) {
        await writer.write([...words, ...(options.lastWords ?? [])]);
        writer.destroy(broken);
        throw broken;
      }
      const full = writer.write(words);
      if (full !== undefined) await full;
    }
    source.cancel(new StreamError('ended', 'the ending was said'));
    await writer.end();
  } catch (reason) {
    source.cancel(reason);
    throw reason;
  } finally {
    options.endSignal?.removeEventListener('abort', finish);
  }
}

/** Feeds what is there to the step; false when nothing is. Throws only what a broken `fail` threw. */
function read(source: BodyReader, step: Sealed<Uint8Array, string>, words: string[], options: BodySourceOptions): boolean {
  let batch: readonly Uint8Array[] | undefined | null;
  try {
    batch = source.take();
  } catch (reason) {
    step.abort(reason, words);
    return true;
  }
  if (batch === undefined) {
    options.onWait?.();
    return false;
  }
  if (batch === null) {
    step.end(words);
  } else {
    options.onBytes?.();
    step.push(batch, words);
  }
  return true;
}
