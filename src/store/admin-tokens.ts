/**
 * Admin tokens: who may use the admin API, and whether only to read. The token itself is shown once; the store keeps its digest.
 */
import type { Cause } from './accounts.ts';
import type { Controls, NotControlled } from './controls.ts';
import { checkName, digestOf, MAX_TOKEN, sameDigest } from './key-rules.ts';
import { done, type Invalid, type Result } from './result.ts';

/** What a token may do: look, or change as well. */
export type AdminRole = 'read' | 'write';

export interface AdminToken {
  /** Unique. */
  readonly name: string;
  readonly role: AdminRole;
  /** What may be shown: the first characters and the last four. */
  readonly prefix: string;
  readonly last4: string;
  readonly createdAtMs: number;
}

export interface AdminTokens {
  /** `secret` is `mizu-admin-` + 43 base64url characters, returned this once: a repetition under the same cause is refused. */
  create(
    token: { readonly name: string; readonly role: AdminRole },
    cause: Cause,
  ): Promise<Result<{ readonly token: AdminToken; readonly secret: string }, Invalid | NotControlled>>;
  list(): Promise<AdminToken[]>;
  /** It is refused from now on. */
  delete(name: string, cause: Cause): Promise<Result<true, NotControlled>>;
  /** The token with this secret; undefined where there is none. */
  authenticate(secret: string): Promise<AdminToken | undefined>;
}

const PREFIX = 'mizu-admin-';
const SECRET_BYTES = 32;

interface Stored extends AdminToken {
  readonly digest: string;
}

export function createAdminTokens(
  controls: Controls,
  { clock, randomBytes }: { readonly clock: { now(): number }; readonly randomBytes: (size: number) => Uint8Array },
): AdminTokens {
  const stored = async (): Promise<Stored[]> =>
    (await controls.list('admin_token')).map(({ text }) => JSON.parse(text) as Stored);
  return {
    async create({ name, role }, cause) {
      const checked = checkName('name', name);
      if (!checked.ok) return checked;
      const secret = PREFIX + Buffer.from(randomBytes(SECRET_BYTES)).toString('base64url');
      const shown = { prefix: secret.slice(0, PREFIX.length + 4), last4: secret.slice(-4), createdAtMs: clock.now() };
      const token: AdminToken = { name, role, ...shown };
      const digest = digestOf(secret);
      const text = JSON.stringify({ ...token, digest } satisfies Stored);
      // The digest stands there as a digest of its own: it can be compared and is of no other use.
      const asked = { role, digest: digestOf(digest) };
      const made = await controls.change(
        { kind: 'admin_token', id: name, text, journalKind: 'admin_token_created', asked },
        cause,
      );
      if (!made.ok) return made;
      return done({ token, secret });
    },

    list: async () => (await stored()).map(({ digest: _digest, ...token }) => token),

    async delete(name, cause) {
      const removed = await controls.change({ kind: 'admin_token', id: name, journalKind: 'admin_token_deleted' }, cause);
      return removed.ok ? done(true) : removed;
    },

    async authenticate(secret) {
      if (!secret.startsWith(PREFIX) || secret.length > MAX_TOKEN) return undefined;
      const digest = digestOf(secret);
      const found = (await stored()).find((token) => sameDigest(token.digest, digest));
      if (found === undefined) return undefined;
      const { digest: _digest, ...token } = found;
      return token;
    },
  };
}
