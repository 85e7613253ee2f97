/** What was made before under the same cause is given again; a key without its secret, which nobody knows any more. */
import { RefusedError } from '../http/admin/refusals.ts';
import type { JournalKind } from '../store/ledger.ts';
import { showAccount } from './accounts.ts';
import { showKey } from './keys.ts';
import type { VerbContext } from './verb.ts';

/** The caller has made sure that the cause was used for this very request. */
export async function made(
  context: VerbContext,
  kind: Extract<JournalKind, 'account_created' | 'key_created'>,
  make: (context: VerbContext) => Promise<object>,
): Promise<object> {
  try {
    return await make(context);
  } catch (thrown) {
    if (!(thrown instanceof RefusedError) || thrown.code !== 'cause_reused') throw thrown;
    const rows = await (await context.store()).ledger.journal({ ref: context.cause.id });
    const row = rows.find((one) => one.kind === kind);
    if (row?.keyId !== undefined) return await showKey(context, { id: row.keyId });
    if (row?.accountId !== undefined) return await showAccount(context, { account: row.accountId });
    throw thrown;
  }
}
