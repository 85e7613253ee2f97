/** The envelope secrets on LMDB: kept in memory, read again when another process may have added one. */
import { randomHex } from '../random-hex.ts';
import { type EnvelopeSecret, type EnvelopeSecrets, secretNote } from '../envelope-secrets.ts';
import { StoreError } from '../store-error.ts';
import type { Environment } from './environment.ts';
import { metaOf } from './tables.ts';
import type { Work } from './work.ts';

/** Makes the first secret when the store has none; two processes that start at once get the same one. */
export async function createSecrets(environment: Environment): Promise<EnvelopeSecrets> {
  const { clock, randomBytes } = environment.options;

  const add = (work: Work, by: string, ref: string): EnvelopeSecret => {
    const known = metaOf(work.tables, 'secrets') ?? [];
    const id = (known.at(-1)?.id ?? 0) + 1;
    if (id > 255) throw new StoreError('amount_out_of_range', 'there are 255 envelope secrets: no id is left');
    const secret = { id, bytes: Buffer.from(randomBytes(32)) };
    work.put(work.tables.meta, 'secrets', [...known, secret]);
    work.note({ kind: 'secret_rotated', ref, atMs: clock.now(), by, note: secretNote(secret) });
    return secret;
  };

  if (metaOf(environment.tables, 'secrets') === undefined) {
    await environment.transact((work) => {
      if (metaOf(work.tables, 'secrets') === undefined) add(work, 'store', `first-secret-${randomHex(randomBytes)}`);
    });
  }

  // One read of a small row (about a microsecond) sees a rotation by another process at once.
  const all = (): readonly EnvelopeSecret[] => environment.look((tables) => metaOf(tables, 'secrets') ?? []);
  return {
    current() {
      const newest = all().at(-1);
      if (newest === undefined) throw new StoreError('corrupt', 'the store has no envelope secret');
      return newest;
    },
    byId: (id) => all().find((secret) => secret.id === id),
    rotate: (cause) =>
      environment.transact((work) => {
        const before = work.journaled(cause.id, 'secret_rotated');
        const made = metaOf(work.tables, 'secrets')?.find((secret) => secretNote(secret) === before?.note);
        return made ?? add(work, cause.by, cause.id);
      }),
  };
}
