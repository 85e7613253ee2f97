/**
 * Objects of one shape, stored as lists of their values: a row then repeats none of its member names, is half as long and is made
 * faster. The order of the members is the format; a new one goes to the end.
 */

/** How a value is stored, and how it comes back. */
export interface Listed<T> {
  list(value: T): unknown;
  value(stored: unknown): T;
}

/** Every member, in stored order: as it is, or in a shape of its own. A member that is missing here does not compile. */
type Members<T> = { readonly [Name in keyof Required<T>]: 'plain' | Listed<NonNullable<T[Name]>> };

/**
 * Absent members are stored as null, which no member may be, and not at all behind the last one that is there. `write`, for rows
 * that are written often, gives the members in the same order, absent ones as undefined: spelled out it takes a third of the
 * time.
 */
export function listed<T extends object>(members: Members<T>, write?: (value: T) => unknown[]): Listed<T> {
  const names = Object.keys(members) as (keyof T)[];
  const shapes = names.map((name) => shapeOf<T[keyof T]>(members[name]));
  const count = names.length;
  const each = (value: T): unknown[] =>
    names.map((name, at) => {
      const member = value[name];
      return member === undefined ? undefined : (shapes[at]?.list(member) ?? member);
    });
  const stored = write ?? each;
  return {
    list(value) {
      const list = stored(value);
      while (list.length > 0 && list.at(-1) === undefined) list.pop();
      return list;
    },
    value(stored) {
      // A store that was written before rows were lists holds the object itself.
      if (!Array.isArray(stored)) return stored as T;
      const value: Partial<T> = {};
      for (let at = 0; at < count; at++) {
        const name = names[at];
        const member: unknown = stored[at] ?? undefined;
        if (name !== undefined && member !== undefined) value[name] = shapes[at]?.value(member) ?? (member as T[keyof T]);
      }
      return value as T;
    },
  };
}

function shapeOf<V>(member: 'plain' | Listed<NonNullable<V>>): Listed<V> | undefined {
  return member === 'plain' ? undefined : (member as Listed<V>);
}

/** A whole number of any size, as its digits: what JSON has no other word for. */
export const INTEGER: Listed<bigint> = {
  list: (value) => value.toString(),
  value: (stored) => (typeof stored === 'string' ? BigInt(stored) : (stored as bigint)),
};

/** Numbers by name, as pairs. */
export const PAIRS: Listed<ReadonlyMap<string, number>> = {
  list: (value) => [...value],
  value: (stored) => new Map(stored as Iterable<[string, number]>),
};

/** A list of such objects. */
export function listOf<T>(each: Listed<T>): Listed<readonly T[]> {
  return {
    list: (values) => values.map((value) => each.list(value)),
    value: (stored) => (Array.isArray(stored) ? stored.map((one) => each.value(one)) : []),
  };
}
