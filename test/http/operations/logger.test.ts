import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLogger } from '../../../src/http/operations/logger.ts';

function logged(write: (log: ReturnType<typeof createLogger>) => void): Record<string, unknown>[] {
  const lines: string[] = [];
  write(createLogger('debug', { write: (line: string) => void lines.push(line) }));
  return lines.map((line) => JSON.parse(line));
}

test('secrets are redacted at three levels, in arrays too, and what is logged stays as it was', () => {
  const members = {
    authorization: 'Bearer s1',
    request: { headers: { 'x-api-key': 's2', accept: 'text' }, token: 's3' },
    tried: [{ apiKey: 's4', channel: 'a' }],
    token: ['s5'],
    fine: 1,
  };
  const before = structuredClone(members);
  const [line] = logged((log) => log.info(members, 'said'));
  assert.ok(line !== undefined);
  const { level, time, msg, ...rest } = line;
  assert.deepEqual([level, typeof time, msg], ['info', 'string', 'said']);
  assert.deepEqual(rest, {
    authorization: '[redacted]',
    request: { headers: { 'x-api-key': '[redacted]', accept: 'text' }, token: '[redacted]' },
    tried: [{ apiKey: '[redacted]', channel: 'a' }],
    token: '[redacted]',
    fine: 1,
  });
  assert.deepEqual(members, before);
});

test('an error is still printed by its serializer', () => {
  const [line] = logged((log) => log.error({ err: new Error('broke') }, 'handler failed'));
  assert.match(JSON.stringify(line?.['err']), /"message":"broke"/);
});
