/**
 * Compares operators' controls with the journal: a token or a Channel out of service comes and goes by a row and no other way.
 */
import { type Control, type ControlKind, controlKey, statedOf } from './controls.ts';
import type { JournalKind, JournalRow } from './ledger.ts';
import type { Expect } from './recount-spend.ts';

const EFFECTS: Partial<Readonly<Record<JournalKind, { readonly kind: ControlKind; readonly isThere: boolean }>>> = {
  admin_token_created: { kind: 'admin_token', isThere: true },
  admin_token_deleted: { kind: 'admin_token', isThere: false },
  channel_out_of_service: { kind: 'channel', isThere: true },
  channel_in_service: { kind: 'channel', isThere: false },
};

export class ControlRecount {
  /** What is there, by its key: what the journal holds about it. */
  readonly #stated = new Map<string, string>();
  readonly #found = new Set<string>();

  journal({ kind, state = '{}' }: JournalRow): void {
    const effect = EFFECTS[kind];
    if (effect === undefined) return;
    const key = controlKey(effect.kind, idIn(state));
    if (effect.isThere) this.#stated.set(key, state);
    else this.#stated.delete(key);
  }

  control(control: Control, expect: Expect): void {
    const key = controlKey(control.kind, control.id);
    this.#found.add(key);
    expect('control', key, this.#stated.get(key) ?? 'nothing', statedOf(control));
  }

  finish(expect: Expect): void {
    for (const [key, state] of this.#stated) if (!this.#found.has(key)) expect('control', key, state, 'nothing');
  }
}

function idIn(state: string): string {
  const stated: unknown = JSON.parse(state);
  return typeof stated === 'object' && stated !== null && 'id' in stated ? String(stated.id) : '';
}
