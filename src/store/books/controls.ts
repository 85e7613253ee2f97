/** How operators' controls are made and removed, and how the name of a request is claimed. */
import { who } from '../account-rules.ts';
import { askedText, CLAIM_MS, type Controls, judgeChange, judgeClaim } from '../controls.ts';
import { type Bookkeeper, got } from './books.ts';

export function controlChanges(keeper: Bookkeeper): Pick<Controls, 'change' | 'claim'> {
  const { clock } = keeper.options;
  return {
    change: (change, cause) =>
      keeper.follow(function* (books) {
        const { kind, id, text, journalKind } = change;
        const earlier = yield* got(books.journaled(cause.id, journalKind));
        const judged = judgeChange(change, cause, earlier, yield* got(books.hasControl(kind, id)));
        if (!judged.ok || judged.value.isRepeated) return judged;
        yield* got(text === undefined ? books.removeControl(kind, id) : books.addControl(kind, id, text));
        books.note({ kind: journalKind, ref: cause.id, atMs: clock.now(), state: askedText(change), ...who(cause) });
        return judged;
      }),

    claim(name, hash) {
      const nowMs = clock.now();
      return keeper.follow(function* (books) {
        yield* got(books.forgetClaims(nowMs - CLAIM_MS));
        const judged = judgeClaim(yield* got(books.claim(name)), hash);
        if (judged === 'new') yield* got(books.addClaim(name, hash, nowMs));
        return judged;
      });
    },
  };
}
