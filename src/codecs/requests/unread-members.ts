/** Finds members of a request that its decoder does not read. They are lost at an upstream of another dialect, which the log reports. */
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { CanonicalRequest, ReadMembers } from '../canonical/request.ts';
import { present } from './members.ts';

/** True when the request loses `unknown members` at an upstream of another dialect. */
export function hasUnreadMembers({ json, reads, readsIn = {} }: CanonicalRequest): boolean {
  for (const key in json) if (!reads.has(key) && present(json[key])) return true;
  return holdsUnreadWithin(json, readsIn);
}

/** Goes through lists, and no deeper than the table: the value of a member that is read counts as read. */
function holdsUnread(value: JsonValue | undefined, members: ReadMembers): boolean {
  if (Array.isArray(value)) return value.some((entry) => holdsUnread(entry, members));
  if (!isObject(value) || members.of?.(value) === false) return false;
  for (const key in value) if (!members.own.has(key) && hasValue(value[key])) return true;
  return members.within !== undefined && holdsUnreadWithin(value, members.within);
}

function holdsUnreadWithin(json: JsonObject, tables: Readonly<Record<string, ReadMembers>>): boolean {
  for (const key in tables) {
    const members = tables[key];
    const value = json[key];
    if (members !== undefined && value !== undefined && holdsUnread(value, members)) return true;
  }
  return false;
}

/** Histories repeat answers whole, with empty values for members that are absent. */
function hasValue(value: JsonValue | undefined): boolean {
  return present(value) && value !== '' && value !== false && !(Array.isArray(value) && value.length === 0);
}

/** The own members of an entry of {@link CanonicalRequest.readsIn}. */
export function own(...names: readonly string[]): Pick<ReadMembers, 'own'> {
  return { own: new Set(names) };
}

/** For {@link ReadMembers.of}: matches entries of these types, and entries without a type. */
export function ofType(...types: readonly string[]): (entry: JsonObject) => boolean {
  const known = new Set(types);
  return ({ type }) => typeof type !== 'string' || known.has(type);
}
