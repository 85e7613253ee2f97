/** Lists and objects without some of what they hold. */

/** The list with what `keep` makes of its entries, without those that it makes undefined; the same list where it changes none. */
export function mapped<T>(list: readonly T[], keep: (entry: T) => T | undefined): readonly T[] {
  let changed: T[] | undefined;
  for (let index = 0; index < list.length; index++) {
    const entry = list[index] as T;
    const kept = keep(entry);
    if (kept !== entry) changed ??= list.slice(0, index);
    if (kept !== undefined) changed?.push(kept);
  }
  return changed ?? list;
}

export function without<T extends object>(from: T, member: string): T {
  return Object.fromEntries(Object.entries(from).filter(([key]) => key !== member)) as T;
}
