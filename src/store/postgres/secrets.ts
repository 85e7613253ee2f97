/** The envelope secrets on PostgreSQL: kept in memory, told of a rotation by the watcher. */
import { firstSecret, rotateSecret } from '../books/secrets.ts';
import type { EnvelopeSecret, EnvelopeSecrets } from '../envelope-secrets.ts';
import { StoreError } from '../store-error.ts';
import { secretsOf } from './books.ts';
import type { Database } from './database.ts';

export interface WatchedSecrets extends EnvelopeSecrets {
  /** Another process may have added this one. */
  learn(id: number, hex: string): void;
  /** Reads them, and makes the first when there is none; two processes that start at once get the same one. */
  start(): Promise<void>;
}

export function createSecrets(database: Database): WatchedSecrets {
  const known = new Map<number, EnvelopeSecret>();
  let newest = 0;

  const keep = (secret: EnvelopeSecret): EnvelopeSecret => {
    if (!known.has(secret.id)) known.set(secret.id, secret);
    newest = Math.max(newest, secret.id);
    return secret;
  };

  return {
    current() {
      const secret = known.get(newest);
      if (secret === undefined) throw new StoreError('corrupt', 'the store has no envelope secret');
      return secret;
    },
    byId: (id) => known.get(id),
    rotate: async (cause) => keep(await rotateSecret(database, cause)),
    learn: (id, hex) => void keep({ id, bytes: Buffer.from(hex, 'hex') }),
    async start() {
      for (const secret of await secretsOf(database)) keep(secret);
      if (newest === 0) for (const secret of await firstSecret(database)) keep(secret);
    },
  };
}
