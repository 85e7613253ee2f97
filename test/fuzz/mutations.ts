/**
 * Valid values made wrong: a list of small changes, each somewhere in the tree. A mutation is JSON, so that a finding can be
 * committed.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { GatewayError } from '../../src/codecs/canonical/error.ts';

export interface Target {
  readonly name: string;
  readonly runs: number;
  readonly input: fc.Arbitrary<unknown>;
  /** Throws when the law is broken. */
  check(input: unknown): void | Promise<void>;
}

/** Values that break naive readers. */
const odd = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    0,
    -1,
    1.5,
    2 ** 53,
    -(2 ** 31),
    1e308,
    '',
    ' ',
    'none',
    'auto',
    '\u0000',
    '\ud800',
    '__proto__',
    'constructor',
    'mz2.AAAA',
    [],
    {},
    [[]],
    [null],
    [{}],
  ),
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.jsonValue({ maxDepth: 3 }),
);

export interface Mutation {
  readonly at: number;
  readonly how: 'replace' | 'delete' | 'duplicate' | 'rename' | 'swap';
  readonly value: unknown;
}

export const mutation: fc.Arbitrary<Mutation> = fc.record({
  at: fc.nat(10_000),
  how: fc.constantFrom('replace' as const, 'delete' as const, 'duplicate' as const, 'rename' as const, 'swap' as const),
  value: odd,
});

interface Slot {
  readonly parent: Record<string, unknown> | unknown[];
  readonly key: string | number;
}

function slotsOf(value: unknown, slots: Slot[] = []): Slot[] {
  if (Array.isArray(value)) {
    for (const [key, child] of value.entries()) {
      slots.push({ parent: value, key });
      slotsOf(child, slots);
    }
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, child] of Object.entries(value)) {
      slots.push({ parent: value as Record<string, unknown>, key });
      slotsOf(child, slots);
    }
  }
  return slots;
}

function set(parent: Slot['parent'], key: string | number, value: unknown): void {
  Object.defineProperty(parent, key, { value, enumerable: true, configurable: true, writable: true });
}

/** A copy with each mutation made somewhere. */
export function mutate(seed: unknown, mutations: readonly Mutation[]): unknown {
  const root: { value: unknown } = { value: structuredClone(seed) };
  for (const { at, how, value } of mutations) {
    const slots = slotsOf(root);
    const slot = slots[at % slots.length];
    const other = slots[(at * 7 + 3) % slots.length];
    if (slot === undefined || other === undefined) continue;
    const { parent, key } = slot;
    const current = (parent as Record<string | number, unknown>)[key];
    if (how === 'replace') set(parent, key, structuredClone(value));
    else if (how === 'swap') set(parent, key, structuredClone((other.parent as Record<string | number, unknown>)[other.key]));
    else if (Array.isArray(parent) && typeof key === 'number')
      parent.splice(key, how === 'delete' ? 1 : 0, ...(how === 'delete' ? [] : [structuredClone(current)]));
    else if (parent !== root) {
      if (how !== 'duplicate') Reflect.deleteProperty(parent, key);
      if (how !== 'delete') set(parent, typeof value === 'string' ? value : `${key}_`, current);
    }
  }
  return root.value;
}

/** Passes what a codec may throw, blaming whom it may; throws anything else on. */
export function isDocumented(thrown: unknown, blame: readonly string[]): void {
  if (thrown instanceof GatewayError && thrown.code !== 'internal_error' && blame.includes(thrown.blame)) {
    assert.ok(thrown.status >= 400 && thrown.message !== '');
    return;
  }
  throw thrown;
}
