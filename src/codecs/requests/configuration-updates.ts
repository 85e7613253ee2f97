/**
 * Changes of the request's configuration inside its history: messages of routers (`configuration_update`) and items of the
 * responses protocol. Other protocols have one configuration for a request, so the last change counts. An upstream of the same
 * protocol gets them in place.
 */
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { optionalObject, optionalString } from './members.ts';

export interface ConfigurationUpdate {
  /** The object that holds the new configuration. */
  readonly members: JsonObject;
  /** Its path. */
  readonly at: string;
}

/** The updates in a history, in order. `updateOf` returns that of an entry. */
export function updatesIn(
  history: JsonValue | undefined,
  updateOf: (entry: JsonObject, index: number) => ConfigurationUpdate | undefined,
): ConfigurationUpdate[] {
  if (!Array.isArray(history)) return [];
  return history.flatMap((entry: JsonValue, index) => (isObject(entry) ? (updateOf(entry, index) ?? []) : []));
}

/** The effort that the last update with one sets. */
export function updatedEffort(updates: readonly ConfigurationUpdate[]): string | undefined {
  return updates
    .flatMap(({ members, at }) => {
      const reasoning = optionalObject(members, 'reasoning', at) ?? {};
      return optionalString(reasoning, 'effort', `${at}.reasoning`) ?? [];
    })
    .at(-1);
}
