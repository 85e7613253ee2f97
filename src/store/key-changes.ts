/** What becomes of a key when an operator changes it. Pure; shared by every engine. */
import { allowedWithin, type Checked } from './key-fields.ts';
import type { KeyChanges, KeyRecord } from './keys.ts';

/** What was asked, as text: for the journal, and to tell a repetition from another change under the same cause. */
export function describeKeyChanges(changes: KeyChanges): string {
  const { name, expiresAtMs, models, ips, limits, disabled } = changes;
  return JSON.stringify({ name, expiresAtMs, models, ips, limits, disabled }, (_, value: unknown) =>
    typeof value === 'bigint' ? value.toString() : value,
  );
}

/** The key with the changes, when every one of them is acceptable. */
export function changedKey(key: KeyRecord, changes: KeyChanges): Checked {
  const { knownModels, disabled = key.disabled, limits: newLimits = {}, ...fields } = changes;
  const { expiresAtMs, models, ips, ...rest } = key;
  const limits = { ...key.limits, ...newLimits };
  return allowedWithin(
    { ...rest, disabled },
    {
      name: fields.name ?? key.name,
      expiresAtMs: fields.expiresAtMs === undefined ? expiresAtMs : (fields.expiresAtMs ?? undefined),
      models: fields.models === undefined ? models : (fields.models ?? undefined),
      ips: fields.ips === undefined ? ips : (fields.ips ?? undefined),
      limits: { total: limits.total ?? undefined, hourly: limits.hourly ?? undefined, daily: limits.daily ?? undefined },
      // An expiry or a model list that was accepted once is not looked at again when something else changes.
      checkExpiry: fields.expiresAtMs !== undefined,
      knownModels: fields.models === undefined ? undefined : knownModels,
    },
  );
}
