/** `GET /readyz`: whether this process takes requests. Says nothing but that. */
import { Waiting } from '../exchange/reply.ts';
import type { Handler } from '../gateway.ts';

export const readyz: Handler = async (call) => {
  const reasons = call.gateway.unready();
  const ready = reasons.length === 0;
  const body = JSON.stringify(ready ? { status: 'ok' } : { status: 'unready', reasons });
  new Waiting(call).answer({ status: ready ? 200 : 503, body, headers: { 'cache-control': 'no-store' } });
};
