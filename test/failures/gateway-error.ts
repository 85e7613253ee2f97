/** Matches a GatewayError by some of its facts, for `assert.throws`. */
import assert from 'node:assert/strict';
import { GatewayError } from '../../src/codecs/canonical/error.ts';

export function gatewayError(facts: {
  readonly code?: string;
  readonly status?: number;
  readonly reason?: string;
  readonly param?: RegExp;
}): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof GatewayError, String(error));
    if (facts.code !== undefined) assert.equal(error.code, facts.code, error.message);
    if (facts.status !== undefined) assert.equal(error.status, facts.status, error.message);
    if (facts.reason !== undefined) assert.equal(error.details.reason, facts.reason, error.message);
    if (facts.param !== undefined) assert.match(error.param ?? '', facts.param);
    return true;
  };
}
