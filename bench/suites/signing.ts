/**
 * What authorising a request to a cloud costs: Signature Version 4 at two sizes of body, and a credential that is at hand. Floor:
 * the hash of the same body, which the signature holds.
 */
import { createHash } from 'node:crypto';
import { Renewed } from '../../src/http/platforms/renewed.ts';
import { Signer } from '../../src/http/platforms/bedrock/sign.ts';
import { systemClock } from '../../src/streams/clock.ts';
import { requestBody } from '../fixtures.ts';
import type { Row } from '../harness/statistics.ts';
import { beside, microsOf } from '../harness/timing.ts';

const TIMES = 100;
/** Of 100 requests. */
const GOAL_MICROS = 60 * TIMES;

export async function signing(rounds: number): Promise<Row[]> {
  const signer = new Signer('us-east-1', 'bedrock');
  const keys = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret', sessionToken: 'x'.repeat(400) };
  const headers = {
    accept: 'application/json',
    'content-type': 'application/json',
    'user-agent': 'mizu',
    'accept-encoding': 'identity',
  };
  const asked = {
    ...{ method: 'POST', host: 'bedrock-runtime.us-east-1.amazonaws.com', headers },
    path: '/model/us.anthropic.claude-sonnet-4-20250514-v1:0/invoke-with-response-stream',
  };
  const small = requestBody('messages', 'bench', true);
  const rows: Row[] = [];
  for (const [name, body, goal] of [
    ['an ordinary request', small, { goal: GOAL_MICROS, goalIs: 'subject' }],
    ['a request of 1 MiB', small.padEnd(1024 * 1024), {}],
  ] as const) {
    const times = body === small ? TIMES : 1;
    const both = beside(
      () => repeated(times, () => createHash('sha256').update(body).digest('hex')),
      () => repeated(times, (at) => signer.sign({ ...asked, body }, keys, 1_750_000_000_000 + at * 1000)),
      rounds,
    );
    rows.push({ suite: 'signing', name: `signature of ${name}`, unit: `µs of ${times}`, ...both, ...goal });
  }
  const renewed = new Renewed(systemClock, async () => ({ value: keys, expiresAtMs: systemClock.now() + 3_600_000 }));
  await renewed.get();
  const { best: subject } = microsOf(() => repeated(TIMES, () => renewed.get()), rounds);
  rows.push({
    suite: 'signing',
    name: 'a credential that is at hand',
    unit: `µs of ${TIMES}`,
    subject,
    goal: TIMES,
    goalIs: 'subject',
  });
  return rows;
}

function repeated(times: number, work: (at: number) => unknown): void {
  for (let at = 0; at < times; at += 1) work(at);
}
