/** Operators' controls on PostgreSQL. */
import { controlChanges } from '../books/controls.ts';
import { type Control, type Controls, isControlKind } from '../controls.ts';
import { StoreError } from '../store-error.ts';
import type { Database } from './database.ts';
import { type Row, text } from './rows.ts';
import type { Statement } from './session.ts';

const LIST: Statement = {
  name: 'controls_list',
  text: 'SELECT * FROM controls WHERE kind = $1 ORDER BY id COLLATE "C"',
};

export function createControls(database: Database): Controls {
  return {
    ...controlChanges(database),

    list: async (kind) => (await database.run(LIST, [kind])).map(controlOf),
  };
}

/** Throws `corrupt` for a kind that nobody wrote. */
export function controlOf(row: Row): Control {
  const kind = text(row, 'kind');
  if (!isControlKind(kind)) throw new StoreError('corrupt', `there is no control of the kind ${kind}`);
  return { kind, id: text(row, 'id'), text: text(row, 'value') };
}
