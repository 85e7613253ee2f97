/** How envelope secrets come to be: the first one with the store, each further one by a rotation. */
import { type EnvelopeSecret, secretNote } from '../envelope-secrets.ts';
import { StoreError } from '../store-error.ts';
import { type Bookkeeper, type Books, got, type Rule } from './books.ts';
import { randomHex } from '../random-hex.ts';

/** The secrets of the store, the first of which is made when there is none: two processes that start at once get the same one. */
export function firstSecret(keeper: Bookkeeper): Promise<readonly EnvelopeSecret[]> {
  const { randomBytes } = keeper.options;
  const bytes = Buffer.from(randomBytes(32));
  const cause = { id: `first-secret-${randomHex(randomBytes)}`, by: 'store' };
  return keeper.follow(function* (books) {
    const known = yield* got(books.secrets());
    return known.length > 0 ? known : [yield* add(books, keeper, bytes, cause)];
  });
}

export function rotateSecret(keeper: Bookkeeper, cause: { readonly id: string; readonly by: string }): Promise<EnvelopeSecret> {
  const bytes = Buffer.from(keeper.options.randomBytes(32));
  return keeper.follow(function* (books) {
    const before = yield* got(books.journaled(cause.id, 'secret_rotated'));
    const made = (yield* got(books.secrets())).find((secret) => secretNote(secret) === before?.note);
    return made ?? (yield* add(books, keeper, bytes, cause));
  });
}

function* add(
  books: Books,
  { options }: Bookkeeper,
  bytes: Uint8Array,
  cause: { readonly id: string; readonly by: string },
): Rule<EnvelopeSecret> {
  const id = ((yield* got(books.secrets())).at(-1)?.id ?? 0) + 1;
  if (id > 255) throw new StoreError('amount_out_of_range', 'there are 255 envelope secrets: no id is left');
  const secret = { id, bytes };
  yield* got(books.addSecret(secret));
  books.note({ kind: 'secret_rotated', ref: cause.id, atMs: options.clock.now(), by: cause.by, note: secretNote(secret) });
  return secret;
}
