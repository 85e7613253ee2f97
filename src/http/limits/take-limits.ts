/** Which limits apply to a request, and what happens where they do not admit it. */
import type { ServerResponse } from 'node:http';
import { GatewayError } from '../../codecs/canonical/error.ts';
import type { Principal } from '../../store/keys.ts';
import type { RateLimits } from '../../store/rate-limits.ts';
import type { Config, Model } from '../config/config.ts';
import type { CallContext } from '../gateway.ts';
import type { Claim, Demand, LimitRefusal, LimitScope } from './buckets.ts';
import { limitHeaders } from './headers.ts';
import { LimitTicket } from './limits.ts';

type LimitedCall = Pick<CallContext, 'gateway' | 'config' | 'notes' | 'route'> & { readonly response?: ServerResponse };

/**
 * The last of the checks before a request is dispatched. The answer, whatever becomes of it, says how much is left. What was
 * taken is in the call's notes, and given back by those who end the call. Rejects with `rate_limit_exceeded`, and nothing is
 * taken then. Undefined where nothing of the request has a limit.
 */
export function takeLimits(call: LimitedCall, principal: Principal, model: Model, demand: Demand): Promise<void> | undefined {
  const claims = claimsOf(call.config, principal, model);
  return claims.length === 0 ? undefined : take(call, claims, demand);
}

async function take(call: LimitedCall, claims: readonly Claim[], demand: Demand): Promise<void> {
  const { limits, metrics, clock } = call.gateway;
  const { refusal, standings, by = limits } = await limits.take(claims, demand);
  const headers = limitHeaders(standings, call.route === 'messages', clock.now());
  call.notes.limitHeaders = headers;
  for (const [name, value] of Object.entries(headers)) call.response?.setHeader(name, value);
  if (refusal === undefined) {
    call.notes.limit = new LimitTicket(by, claims, demand);
    return;
  }
  metrics.rateLimited(refusal.scope, refusal.kind);
  throw exceeded(refusal);
}

/** The buckets of a request: those of its key, its account, its model and its account's class that have limits. */
function claimsOf(config: Pick<Config, 'classes'>, { key, account }: Principal, model: Model): Claim[] {
  const claims: Claim[] = [];
  const add = (scope: LimitScope, id: string, limits: RateLimits | undefined): void => {
    if (limits !== undefined) claims.push({ scope, bucket: `${scope}:${id}`, limits });
  };
  add('key', key.id, key.rateLimits);
  add('account', account.id, account.rateLimits);
  add('model', model.name, model.rateLimits);
  add('class', account.class, config.classes.get(account.class));
  return claims;
}

const SCOPES: Readonly<Record<LimitScope, string>> = {
  key: 'this API key',
  account: 'this account',
  model: 'this model',
  class: 'accounts of this class',
};

const KINDS: Readonly<Record<LimitRefusal['kind'], string>> = {
  requests: 'requests a minute',
  tokens: 'tokens a minute',
  concurrency: 'requests at once',
};

/** Codex reads the seconds out of the message. */
function exceeded({ scope, kind, limit, waitMs }: LimitRefusal): GatewayError {
  const seconds = Math.ceil(waitMs / 10) / 100;
  const message = `Rate limit reached: ${limit} ${KINDS[kind]} for ${SCOPES[scope]}. Please try again in ${seconds}s.`;
  return new GatewayError('rate_limit_exceeded', message, { retryAfterMs: waitMs });
}
