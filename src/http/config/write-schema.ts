/** Writes `mizu.schema.json` from the TypeBox schema. Run by hand after a change of `schema.ts`, then `npm run format`; a test says when it was forgotten. */
import { writeFileSync } from 'node:fs';
import { CONFIG_SCHEMA } from './schema.ts';

writeFileSync('mizu.schema.json', `${JSON.stringify(CONFIG_SCHEMA, null, 2)}\n`);
