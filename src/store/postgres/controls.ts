/** Operators' controls on PostgreSQL. */
import { who } from '../account-rules.ts';
import {
  askedText,
  CLAIM_MS,
  type Control,
  type ControlKind,
  type Controls,
  isControlKind,
  judgeChange,
  judgeClaim,
} from '../controls.ts';
import { storable } from '../storable.ts';
import { StoreError } from '../store-error.ts';
import type { Database } from './database.ts';
import { type Row, text } from './rows.ts';
import type { Statement } from './session.ts';

const LIST: Statement = {
  name: 'controls_list',
  text: 'SELECT * FROM controls WHERE kind = $1 ORDER BY id COLLATE "C"',
};
const FIND: Statement = { name: 'control_find', text: 'SELECT value FROM controls WHERE kind = $1 AND id = $2' };
export const PUT_CONTROL: Statement = { name: 'control_put', text: 'INSERT INTO controls (kind, id, value) VALUES ($1, $2, $3)' };
const REMOVE: Statement = { name: 'control_remove', text: 'DELETE FROM controls WHERE kind = $1 AND id = $2' };
const FORGET: Statement = { name: 'claims_forget', text: 'DELETE FROM operator_claims WHERE at_ms < $1' };
const CLAIMED: Statement = { name: 'claim_find', text: 'SELECT hash FROM operator_claims WHERE name = $1' };
const CLAIM: Statement = { name: 'claim_put', text: 'INSERT INTO operator_claims (name, hash, at_ms) VALUES ($1, $2, $3)' };

export function createControls(database: Database): Controls {
  const { clock } = database.options;
  return {
    list: async (kind: ControlKind): Promise<Control[]> => (await database.run(LIST, [kind])).map(controlOf),

    async change(change, cause) {
      const { kind, text: value, journalKind } = change;
      const id = storable(change.id);
      return await database.transact(async (work) => {
        const earlier = await work.journaled(cause.id, journalKind);
        const isThere = (await work.run(FIND, [kind, id])).length > 0;
        const judged = judgeChange(change, cause, earlier, isThere);
        if (!judged.ok || judged.value.isRepeated) return judged;
        if (value === undefined) await work.run(REMOVE, [kind, id]);
        else await work.run(PUT_CONTROL, [kind, id, value]);
        work.note({ kind: journalKind, ref: cause.id, atMs: clock.now(), state: askedText(change), ...who(cause) });
        return judged;
      });
    },

    async claim(name, hash) {
      const nowMs = clock.now();
      return await database.transact(async (work) => {
        await work.run(FORGET, [nowMs - CLAIM_MS]);
        const [row] = await work.run(CLAIMED, [name]);
        const judged = judgeClaim(row === undefined ? undefined : { hash: text(row, 'hash') }, hash);
        if (judged === 'new') await work.run(CLAIM, [name, hash, nowMs]);
        return judged;
      });
    },
  };
}

/** Throws `corrupt` for a kind that nobody wrote. */
export function controlOf(row: Row): Control {
  const kind = text(row, 'kind');
  if (!isControlKind(kind)) throw new StoreError('corrupt', `there is no control of the kind ${kind}`);
  return { kind, id: text(row, 'id'), text: text(row, 'value') };
}
