/** The envelope secrets on LMDB: kept in memory, read again when another process may have added one. */
import { firstSecret, rotateSecret } from '../books/secrets.ts';
import type { EnvelopeSecret, EnvelopeSecrets } from '../envelope-secrets.ts';
import { StoreError } from '../store-error.ts';
import type { Environment } from './environment.ts';
import { metaOf } from './tables.ts';

export async function createSecrets(environment: Environment): Promise<EnvelopeSecrets> {
  if (metaOf(environment.tables, 'secrets') === undefined) await firstSecret(environment);

  // One read of a small row (about a microsecond) sees a rotation by another process at once.
  const all = (): readonly EnvelopeSecret[] => environment.look((tables) => metaOf(tables, 'secrets') ?? []);
  return {
    current() {
      const newest = all().at(-1);
      if (newest === undefined) throw new StoreError('corrupt', 'the store has no envelope secret');
      return newest;
    },
    byId: (id) => all().find((secret) => secret.id === id),
    rotate: (cause) => rotateSecret(environment, cause),
  };
}
