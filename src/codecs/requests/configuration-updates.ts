/**
 * What a history changes of the request itself: messages of routers (`configuration_update`) and items of the responses protocol. Other
 * protocols say such things once for a whole request, so the last word counts there. An upstream of the same protocol reads them where they stand.
 */
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { optionalObject, optionalString } from './members.ts';

export interface ConfigurationUpdate {
  readonly says: JsonObject;
  /** The path of what says it. */
  readonly at: string;
}

/** The updates in a history, in order; `updateOf` tells them. */
export function updatesIn(
  history: JsonValue | undefined,
  updateOf: (entry: JsonObject, index: number) => ConfigurationUpdate | undefined,
): ConfigurationUpdate[] {
  if (!Array.isArray(history)) return [];
  return history.flatMap((entry: JsonValue, index) => (isObject(entry) ? (updateOf(entry, index) ?? []) : []));
}

/** The effort that the updates have come to: the last word counts. */
export function updatedEffort(updates: readonly ConfigurationUpdate[]): string | undefined {
  return updates
    .flatMap(({ says, at }) => {
      const reasoning = optionalObject(says, 'reasoning', at) ?? {};
      return optionalString(reasoning, 'effort', `${at}.reasoning`) ?? [];
    })
    .at(-1);
}
