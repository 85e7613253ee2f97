/** In place of the tokenizer's thread: counts characters, and ends as it is told. */
import { parentPort } from 'node:worker_threads';
import type { CountReply, CountRequest } from '../../../../src/http/exchange/tokenizer.ts';

parentPort?.on('message', ({ id, text }: CountRequest) => {
  if (text === 'throw') throw new Error('thrown');
  if (text === 'exit') process.exit(0);
  parentPort?.postMessage({ id, tokens: text.length } satisfies CountReply);
});
