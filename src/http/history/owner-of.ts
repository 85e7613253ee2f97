/** The owner of a stored response: account and key. To any other owner its id is unknown. */
import type { Principal } from '../../store/keys.ts';

export function ownerOf({ account, key }: Principal): string {
  return `${account.id}/${key.id}`;
}
