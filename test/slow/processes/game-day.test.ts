/**
 * The game day: the gateway as a process, three simulated Channels of three dialects, official SDK clients that stream without a
 * pause, and an operator who breaks the Channels one after another. What he did is printed; the same timeline is then
 * reconstructed from `mizu logs` alone, and its counts from `/metrics` alone.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ACTS,
  attemptsIn,
  breakOneByOne,
  CHANNEL_IDS,
  channelsOf,
  logOf,
  startCrowd,
  startUpstreams,
  sumOf,
  timelineOf,
} from '../../support/game-day.ts';
import { freePort, install, waitFor } from '../../support/processes.ts';

/** Good answers of a Channel in a row after which it is well again: more than were in flight when it broke. */
const ENOUGH = 2;

test('a game day can be read back from the request log and the metrics', async (t) => {
  const simulators = await startUpstreams(t);
  const operationsPort = await freePort();
  await using place = await install({
    operations: { port: operationsPort },
    ...channelsOf(simulators),
    models: { m: { price: { input: '1', output: '2' } }, slow: { price: { input: '1', output: '2' } } },
  });
  const serving = await place.serve();
  const metrics = async (): Promise<string> => (await fetch(`http://127.0.0.1:${operationsPort}/metrics`)).text();

  const crowd = startCrowd(new Map([['one', serving.url]]), place.key, 2);
  const told = await breakOneByOne(simulators, crowd, metrics, ENOUGH);
  await crowd.stop();
  await waitFor(
    async () => /^mizu_settlements_pending 0$/m.test(await metrics()) || undefined,
    () => 'settlements wait',
  );
  const figures = await metrics();
  assert.equal(await serving.stop(), 0);

  const rows = await logOf(place);
  const read = timelineOf(rows, ENOUGH);
  t.diagnostic(`told: ${told.join('; ')}`);
  t.diagnostic(`read: ${read.join('; ')}`);
  assert.deepEqual(read, told, 'the log tells what happened');
  assert.equal(rows.length, crowd.asked.length, 'one row an exchange');
  const failed = rows.filter(({ status }) => status === 'error');
  assert.deepEqual(failed.map(({ clientRequestId }) => clientRequestId).sort(), crowd.failures.map(({ id }) => id).sort());

  for (const id of CHANNEL_IDS) {
    const attempts = rows.flatMap((row) => row.attempts).filter(({ channelId }) => channelId === id);
    const good = attempts.filter(({ errorCode }) => errorCode === undefined).length;
    const counted = [attemptsIn(figures, id, 'success'), attemptsIn(figures, id, 'failure')];
    assert.deepEqual(counted, [good, attempts.length - good], `${id}: metrics and log agree`);
  }
  for (const { id, reason } of ACTS) {
    assert.match(figures, new RegExp(`mizu_attempts_total\\{channel="${id}",outcome="failure",reason="${reason}"\\} \\d`));
  }
  assert.match(figures, /mizu_circuit_transitions_total\{channel="ada",state="open"\} \d/);
  assert.equal(sumOf(figures, 'mizu_errors_total\\{[^}]*\\}'), crowd.failures.length);
  assert.match((await place.run('logs', '--request', failed[0]?.requestId ?? '')).out, /cyd/);
  assert.equal((await place.run('ledger', 'verify')).code, 0);
});
