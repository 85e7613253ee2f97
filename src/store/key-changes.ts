/** What becomes of a key when an operator changes it. Pure; shared by every engine. */
import type { Cause } from './accounts.ts';
import { allowedWithin, type Checked } from './key-fields.ts';
import type { KeyChanges, KeyRecord } from './keys.ts';

/** What was asked and why, as text: for the journal, and to tell a repetition from another change under the same cause. */
export function describeKeyChanges(changes: KeyChanges, { note: reason }: Cause): string {
  const { name, expiresAtMs, expiresInMs, models, ips, limits, disabled, deleted, rateLimits } = changes;
  const asked = { name, expiresAtMs, expiresInMs, models, ips, limits, disabled, deleted, rateLimits, reason };
  return JSON.stringify(asked, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value));
}

/** The key with the changes made at `nowMs`, when every one of them is acceptable. */
export function changedKey(key: KeyRecord, changes: KeyChanges, nowMs: number): Checked {
  const { knownModels, deleted, limits: newLimits = {}, expiresInMs, ...fields } = changes;
  const disabled = deleted === true || (fields.disabled ?? key.disabled);
  const newExpiry = expiresInMs === undefined ? fields.expiresAtMs : nowMs + expiresInMs;
  const { expiresAtMs, models, ips, rateLimits, ...rest } = key;
  const limits = { ...key.limits, ...newLimits };
  return allowedWithin(
    { ...rest, disabled, ...(deleted === true ? { deletedAtMs: nowMs } : {}) },
    {
      name: fields.name ?? key.name,
      expiresAtMs: newExpiry === undefined ? expiresAtMs : (newExpiry ?? undefined),
      models: fields.models === undefined ? models : (fields.models ?? undefined),
      ips: fields.ips === undefined ? ips : (fields.ips ?? undefined),
      limits: { total: limits.total ?? undefined, hourly: limits.hourly ?? undefined, daily: limits.daily ?? undefined },
      rateLimits: { before: rateLimits, changes: fields.rateLimits },
      // An expiry or a model list that was accepted once is not looked at again when something else changes.
      checkExpiry: newExpiry !== undefined,
      knownModels: fields.models === undefined ? undefined : knownModels,
    },
  );
}
