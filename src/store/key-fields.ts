/** Checks the fields of a key that an operator sets, together: at creation and at every change. Pure; shared by every engine. */
import { defined } from './defined.ts';
import { checkExpiry, checkIps, checkLimits, checkModels, checkName } from './key-rules.ts';
import type { KeyRecord, NewKey, KeyChanges } from './keys.ts';
import { changedRateLimits, type RateLimitChanges, type RateLimits } from './rate-limits.ts';
import { done, type Invalid, invalid, type Result } from './result.ts';
import type { Cause } from './accounts.ts';

/** The fields that may be set, with `undefined` for "no restriction". */
export interface KeyFields {
  readonly name: string;
  readonly expiresAtMs: number | undefined;
  readonly models: readonly string[] | undefined;
  readonly ips: readonly string[] | undefined;
  readonly limits: {
    readonly total: bigint | undefined;
    readonly hourly: bigint | undefined;
    readonly daily: bigint | undefined;
  };
  readonly rateLimits: { readonly before: RateLimits | undefined; readonly changes: RateLimitChanges | undefined };
  /** False: the expiry was accepted before and may have passed since. */
  readonly checkExpiry: boolean;
  readonly knownModels: ReadonlySet<string> | undefined;
}

export type Checked = Result<KeyRecord, Invalid>;
export type KeySettings = Pick<KeyRecord, 'name' | 'expiresAtMs' | 'models' | 'ips' | 'limits' | 'rateLimits'>;

const CHOSEN_SECRET = /^[\x21-\x7e]{8,256}$/;

export function checkedKey(key: NewKey): Result<KeySettings, Invalid> {
  if (key.secret !== undefined && !CHOSEN_SECRET.test(key.secret))
    return invalid('secret', 'must be 8 to 256 visible ASCII characters');
  const { total, hourly, daily } = key.limits ?? {};
  return settings({
    name: key.name,
    expiresAtMs: key.expiresAtMs,
    models: key.models,
    ips: key.ips,
    limits: { total, hourly, daily },
    rateLimits: { before: undefined, changes: key.rateLimits },
    checkExpiry: true,
    knownModels: key.knownModels,
  });
}

/** `base` with the fields, when every one of them is acceptable. */
function allowedWithin(base: Omit<KeyRecord, 'expiresAtMs' | 'models' | 'ips' | 'rateLimits'>, fields: KeyFields): Checked {
  const checked = settings(fields);
  return checked.ok ? done({ ...base, ...checked.value }) : checked;
}

function settings(fields: KeyFields): Result<KeySettings, Invalid> {
  const name = checkName('name', fields.name);
  if (!name.ok) return name;
  const { expiresAtMs } = fields;
  if (expiresAtMs !== undefined && fields.checkExpiry) {
    const expiry = checkExpiry(expiresAtMs);
    if (!expiry.ok) return expiry;
  }
  const models = fields.models === undefined ? undefined : checkModels(fields.models, fields.knownModels);
  if (models !== undefined && !models.ok) return models;
  const ips = fields.ips === undefined ? undefined : checkIps(fields.ips);
  if (ips !== undefined && !ips.ok) return ips;
  const limits = checkLimits(defined(fields.limits));
  if (!limits.ok) return limits;
  const rateLimits = changedRateLimits(fields.rateLimits.before, fields.rateLimits.changes);
  if (!rateLimits.ok) return rateLimits;
  return done({
    name: name.value,
    ...defined({ expiresAtMs, models: models?.value, ips: ips?.value, rateLimits: rateLimits.value }),
    limits: limits.value,
  });
}

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
