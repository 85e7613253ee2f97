/**
 * What a history changes of the request itself: messages of routers (`configuration_update`) and items of the responses protocol. Every other
 * protocol says such things once a request, so what counts is what they have become. Their own protocol reads them in their place.
 */
import { isObject, type JsonObject, type JsonValue } from './canonical/json.ts';
import type { ReasoningControl } from './canonical/request.ts';

export interface ConfigurationUpdate {
  readonly says: JsonObject;
  /** The number of its message or item. */
  readonly index: number;
}

/** The updates in a history, in order; `updateOf` tells them. */
export function updatesIn(
  history: JsonValue | undefined,
  updateOf: (entry: JsonObject) => JsonObject | undefined,
): ConfigurationUpdate[] {
  if (!Array.isArray(history)) return [];
  return history.flatMap((entry: JsonValue, index) => {
    const says = isObject(entry) ? updateOf(entry) : undefined;
    return says === undefined ? [] : [{ says, index }];
  });
}

/** The reasoning that the updates have come to: the last word counts. */
export function withUpdatedEffort(
  control: ReasoningControl | undefined,
  updates: readonly ConfigurationUpdate[],
): ReasoningControl | undefined {
  const efforts = updates.flatMap(({ says: { reasoning } }) => {
    const effort = isObject(reasoning) ? reasoning['effort'] : undefined;
    return typeof effort === 'string' ? [effort] : [];
  });
  const effort = efforts.at(-1);
  return effort === undefined ? control : { ...control, effort };
}
