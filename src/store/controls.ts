/**
 * What operators decide while gateways run, and what the store keeps of it beside accounts and keys: admin tokens, Channels out
 * of service. Small and few. Each change is one journaled transaction. Also which requests of operators were made already.
 */
import { hash } from 'node:crypto';
import type { Cause, ReusedCause } from './accounts.ts';
import type { JournalKind } from './ledger.ts';
import { done, refused, type Result } from './result.ts';

const CONTROL_KINDS = ['admin_token', 'channel'] as const;
export type ControlKind = (typeof CONTROL_KINDS)[number];

export function isControlKind(kind: string): kind is ControlKind {
  return CONTROL_KINDS.some((known) => known === kind);
}

export interface Control {
  readonly kind: ControlKind;
  readonly id: string;
  /** JSON. */
  readonly text: string;
}

export interface ControlChange {
  readonly kind: ControlKind;
  readonly id: string;
  /** JSON. Absent: it is removed. */
  readonly text?: string;
  readonly journalKind: Extract<JournalKind, `admin_token_${string}` | `channel_${string}`>;
  /**
   * What was asked, beside the id and without secrets: for the journal, and to tell a repetition from another change under the
   * same cause.
   */
  readonly asked?: Readonly<Record<string, string>>;
}

/** `taken`: it is there already. `not_found`: there is nothing to remove. */
export type NotControlled = ReusedCause | { readonly reason: 'taken' | 'not_found' };

/** The text of what was asked, as the journal holds it. */
export const askedText = ({ id, asked }: Pick<ControlChange, 'id' | 'asked'>): string => JSON.stringify({ id, ...asked });

/** The same of a record that is there: what its row in the journal must hold. */
export function statedOf({ kind, id, text }: Control): string {
  if (kind === 'channel') return askedText({ id });
  const { role, digest }: { readonly role: string; readonly digest: string } = JSON.parse(text);
  return askedText({ id, asked: { role, digest: hash('sha256', digest, 'hex') } });
}

export const controlKey = (kind: ControlKind, id: string): string => `${kind} ${id}`;

export interface Controls {
  /** In the order of their ids. */
  list(kind: ControlKind): Promise<readonly Control[]>;
  /** Makes or removes one. `isRepeated`: it was done before under this cause, and nothing was changed. */
  change(change: ControlChange, cause: Cause): Promise<Result<{ readonly isRepeated: boolean }, NotControlled>>;
  /**
   * Claims the name of a request, whose content `hash` stands for. `new`: nobody had; `same`: this very request had it; `other`:
   * another one. Names are forgotten after {@link CLAIM_MS}.
   */
  claim(name: string, hash: string): Promise<'new' | 'same' | 'other'>;
}

/** How long the name of a request is kept. */
export const CLAIM_MS = 7 * 24 * 60 * 60_000;

/**
 * What becomes of a change, given the state of an earlier one under its cause (undefined: none) and whether the record is there.
 */
export function judgeChange(
  change: ControlChange,
  cause: Cause,
  earlier: { readonly state?: string } | undefined,
  isThere: boolean,
): Result<{ readonly isRepeated: boolean }, NotControlled> {
  if (earlier !== undefined)
    return earlier.state === askedText(change)
      ? done({ isRepeated: true })
      : refused({ reason: 'cause_reused', cause: cause.id });
  const { text } = change;
  if (text !== undefined && isThere) return refused({ reason: 'taken' });
  if (text === undefined && !isThere) return refused({ reason: 'not_found' });
  return done({ isRepeated: false });
}

/** What the older claim of a name means for a new one. */
export function judgeClaim(earlier: { readonly hash: string } | undefined, hash: string): 'new' | 'same' | 'other' {
  if (earlier === undefined) return 'new';
  return earlier.hash === hash ? 'same' : 'other';
}
