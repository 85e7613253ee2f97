/**
 * How slow this machine is just now. Bounds of milliseconds are meant for an idle machine on which the work below takes
 * `REFERENCE_MS`. On a slower one, or beside neighbours that press its caches and its memory, everything takes longer alike,
 * which says nothing about the code.
 */

/** Processor time of the rounds: what they take once the engine has compiled them. */
const REFERENCE_MS = 48;
/** Together longer than the ticks of some milliseconds in which the kernel counts. */
const ROUNDS = 4;
const HALF = 'word '.repeat(2 * 1024 * 1024);
const RECORDS = Array.from({ length: 8_000 }, (_, at) => ({ id: `item_${at}`, list: [at, 'a', null], text: 'some words' }));

/** What the gateway's long turns do: texts are put together and made bytes, values are written and parsed. */
function round(at: number): number {
  const text = `${HALF}${at}${HALF}`;
  const read: readonly unknown[] = JSON.parse(JSON.stringify(RECORDS));
  return text.charCodeAt(at) + Buffer.from(text).length + read.length;
}

/** 1 where the bounds hold as they are, 2 where all takes twice as long as they assume. Takes some fifty milliseconds. */
export function machinePace(): number {
  const before = process.threadCpuUsage();
  let done = 0;
  for (let at = 0; at < ROUNDS; at++) done += round(at);
  const { user, system } = process.threadCpuUsage(before);
  if (done === 0) throw new Error('nothing was done');
  return Math.max(1, (user + system) / 1000 / REFERENCE_MS);
}
