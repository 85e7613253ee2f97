/** Ids that are too long for a protocol, or have characters that it refuses: the part that it takes, and a digest that keeps them apart. */
import { createHash } from 'node:crypto';

const DIGEST_CHARS = 12;
/** Of a `user`, at vendors of the chat and responses protocols (`string_above_max_length`). Agents of messages say whole records there. */
const MAX_USER = 64;

/** At most `maxLength` characters; the same for the same `id`. `shown`: the id in the characters that are taken. */
export function shortId(id: string, shown: string, maxLength: number): string {
  const digest = createHash('sha256').update(id).digest('hex').slice(0, DIGEST_CHARS);
  return `${shown.slice(0, maxLength - DIGEST_CHARS - 1).toWellFormed()}_${digest}`;
}

/** An end user's id for a vendor that takes no long one. */
export function shortUser(user: string | undefined): string | undefined {
  return user === undefined || user.length <= MAX_USER ? user : shortId(user, user, MAX_USER);
}
