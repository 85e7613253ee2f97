/** How long a session of the console lasts, whatever becomes of the clock. */
import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { pino } from 'pino';
import { SignIn } from '../../src/http/admin/sign-in.ts';
import type { AdminToken, AdminTokens } from '../../src/store/admin-tokens.ts';
import { createFakeClock } from '../support/fake-clock.ts';

const HOUR = 3_600_000;
const MONTH = 30 * 24 * HOUR;

const askedWith = (cookie?: string): IncomingMessage =>
  ({ headers: cookie === undefined ? {} : { cookie }, socket: {} }) as IncomingMessage;

test('a session lasts twelve hours and no longer, though the clock is set back or forward by a month', async () => {
  const clock = createFakeClock();
  const token: AdminToken = { name: 'ops', role: 'write', prefix: 'mizu-admin-abcd', last4: 'wxyz', createdAtMs: 1 };
  const refused = async () => assert.fail('nobody makes or deletes tokens');
  const tokens: AdminTokens = { create: refused, delete: refused, list: async () => [token], authenticate: async () => token };
  const signIn = new SignIn({ tokens: async () => tokens, clock, log: pino({ level: 'silent' }) });
  for (const jump of [-MONTH, MONTH, 0]) {
    const opened = await signIn.open('secret', askedWith());
    assert.ok(typeof opened === 'object');
    const asked = askedWith(opened.cookie.split(';')[0]);
    clock.jump(jump);
    clock.advance(12 * HOUR - 1);
    assert.deepEqual(await signIn.identify(asked), { token, by: 'session' }, 'its twelve hours are not over');
    clock.advance(1);
    assert.equal(await signIn.identify(asked), 'unauthorized');
  }
});
