/** The thread of {@link Tokenizer}. */
import { parentPort } from 'node:worker_threads';
import { countTokens } from 'gpt-tokenizer';
import type { CountReply, CountRequest } from './tokenizer.ts';

/** A run that the tokenizer takes for one word. Its time grows with the square of the length, and no real word is this long. */
const LONG_RUN = /[\p{L}\p{M}]{64}|[^\s\p{L}\p{N}]{64}|\s{64}/gu;

/** The text in pieces: long runs of letters, signs or spaces are cut. */
function shortRuns(text: string): string[] {
  const pieces: string[] = [];
  let from = 0;
  for (const { 0: run, index } of text.matchAll(LONG_RUN)) {
    pieces.push(text.slice(from, index + run.length));
    from = index + run.length;
  }
  pieces.push(text.slice(from));
  return pieces;
}

parentPort?.on('message', ({ id, text }: CountRequest) => {
  const tokens = shortRuns(text).reduce((sum, piece) => sum + countTokens(piece, { disallowedSpecial: new Set() }), 0);
  parentPort?.postMessage({ id, tokens } satisfies CountReply);
});
