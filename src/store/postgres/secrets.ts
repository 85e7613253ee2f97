/** The envelope secrets on PostgreSQL: kept in memory, told of a rotation by the watcher. */
import { type EnvelopeSecret, type EnvelopeSecrets, secretNote } from '../envelope-secrets.ts';
import { randomHex } from '../random-hex.ts';
import { StoreError } from '../store-error.ts';
import type { Database } from './database.ts';
import { bytes, int } from './rows.ts';
import type { Statement } from './session.ts';
import type { Work } from './work.ts';

const ALL: Statement = { name: 'secrets', text: 'SELECT * FROM envelope_secrets ORDER BY id' };
const INSERT: Statement = { name: 'secret_insert', text: 'INSERT INTO envelope_secrets (id, bytes) VALUES ($1, $2)' };

export interface WatchedSecrets extends EnvelopeSecrets {
  /** Another process may have added this one. */
  learn(id: number, hex: string): void;
  /** Reads them, and makes the first when there is none; two processes that start at once get the same one. */
  start(): Promise<void>;
}

export function createSecrets(database: Database): WatchedSecrets {
  const { clock, randomBytes } = database.options;
  const known = new Map<number, EnvelopeSecret>();
  let newest = 0;

  const keep = (secret: EnvelopeSecret): EnvelopeSecret => {
    if (!known.has(secret.id)) known.set(secret.id, secret);
    newest = Math.max(newest, secret.id);
    return secret;
  };

  const all = async (run: Pick<Work, 'run'>): Promise<EnvelopeSecret[]> =>
    (await run.run(ALL)).map((row) => ({ id: int(row, 'id'), bytes: bytes(row, 'bytes') }));

  const add = async (work: Work, secretBytes: Uint8Array, by: string, ref: string): Promise<EnvelopeSecret> => {
    const id = ((await all(work)).at(-1)?.id ?? 0) + 1;
    if (id > 255) throw new StoreError('amount_out_of_range', 'there are 255 envelope secrets: no id is left');
    const secret = { id, bytes: secretBytes };
    await work.run(INSERT, [id, secret.bytes]);
    work.note({ kind: 'secret_rotated', ref, atMs: clock.now(), by, note: secretNote(secret) });
    return secret;
  };

  return {
    current() {
      const secret = known.get(newest);
      if (secret === undefined) throw new StoreError('corrupt', 'the store has no envelope secret');
      return secret;
    },
    byId: (id) => known.get(id),
    async rotate(cause) {
      const fresh = Buffer.from(randomBytes(32));
      const made = await database.transact(async (work) => {
        const before = await work.journaled(cause.id, 'secret_rotated');
        const known = before === undefined ? [] : await all(work);
        return known.find((secret) => secretNote(secret) === before?.note) ?? (await add(work, fresh, cause.by, cause.id));
      });
      return keep(made);
    },
    learn: (id, hex) => void keep({ id, bytes: Buffer.from(hex, 'hex') }),
    async start() {
      for (const secret of await all(database)) keep(secret);
      if (newest > 0) return;
      const fresh = Buffer.from(randomBytes(32));
      const first = `first-secret-${randomHex(randomBytes)}`;
      const found = await database.transact(async (work) => {
        const there = await all(work);
        return there.length > 0 ? there : [await add(work, fresh, 'store', first)];
      });
      for (const secret of found) keep(secret);
    },
  };
}
