/** Who a stored response belongs to: tenant and key. Anybody else's id is as unknown as one that never was. */
import type { Principal } from '../../store/keys.ts';

export function ownerOf({ account, key }: Principal): string {
  return `${account.id}/${key.id}`;
}
