/** Operators' controls on LMDB. */
import { who } from '../account-rules.ts';
import { askedText, CLAIM_MS, type Control, type Controls, isControlKind, judgeChange, judgeClaim } from '../controls.ts';
import { StoreError } from '../store-error.ts';
import type { Environment } from './environment.ts';

export function createControls(environment: Environment): Controls {
  const { clock } = environment.options;
  return {
    list: async (kind) =>
      environment.look((tables) =>
        [...tables.controls.getRange({ start: [kind, ''] })]
          .filter(({ key }) => key[0] === kind)
          .map(({ key, value }) => controlOf(key, value)),
      ),

    async change(change, cause) {
      const { kind, id, text, journalKind } = change;
      return await environment.transact((work) => {
        const { controls } = work.tables;
        const judged = judgeChange(change, cause, work.journaled(cause.id, journalKind), controls.doesExist([kind, id]));
        if (!judged.ok || judged.value.isRepeated) return judged;
        if (text === undefined) work.remove(controls, [kind, id]);
        else work.put(controls, [kind, id], text);
        work.note({ kind: journalKind, ref: cause.id, atMs: clock.now(), state: askedText(change), ...who(cause) });
        return judged;
      });
    },

    async claim(name, hash) {
      const nowMs = clock.now();
      return await environment.transact((work) => {
        const { claims } = work.tables;
        for (const { key, value } of [...claims.getRange()]) if (value.atMs < nowMs - CLAIM_MS) work.remove(claims, key);
        const judged = judgeClaim(claims.get(name), hash);
        if (judged === 'new') work.put(claims, name, { hash, atMs: nowMs });
        return judged;
      });
    },
  };
}

/** Throws `corrupt` for a kind that nobody wrote. */
export function controlOf([kind, id]: [string, string], text: string): Control {
  if (!isControlKind(kind)) throw new StoreError('corrupt', `there is no control of the kind ${kind}`);
  return { kind, id, text };
}
