/** Who pays for what a key does, and the names of the ledger accounts of wallets and keys. Pure; shared by every engine. */
import type { KeyRecord } from './keys.ts';
import type { LedgerAccount } from './ledger.ts';

export const walletOf = (accountId: string): LedgerAccount => `wallet:${accountId}`;
export const subAccountOf = (keyId: string): LedgerAccount => `sub:${keyId}`;

type Payer = Pick<KeyRecord, 'id' | 'accountId' | 'subAccount' | 'disabled'>;

/** A disabled key has no balance of its own any more: it was returned to the wallet, and late charges follow it. */
export function paysFromSubAccount(key: Pick<KeyRecord, 'subAccount' | 'disabled'>): boolean {
  return key.subAccount && !key.disabled;
}

/** The ledger account that pays for what a key does. An unlimited account's usage is journaled against the house. */
export function payerOf(key: Payer, unlimited: boolean): LedgerAccount {
  if (paysFromSubAccount(key)) return subAccountOf(key.id);
  return unlimited ? `house:${key.accountId}` : walletOf(key.accountId);
}

/** Where a hold goes back to: where it came from, or the wallet when that was the sub-account of a key disabled since. */
export function refundTo(
  hold: { readonly from: LedgerAccount; readonly keyId: string; readonly accountId: string },
  key: Pick<KeyRecord, 'subAccount' | 'disabled'> | undefined,
): LedgerAccount {
  const gone = hold.from === subAccountOf(hold.keyId) && (key === undefined || !paysFromSubAccount(key));
  return gone ? walletOf(hold.accountId) : hold.from;
}
