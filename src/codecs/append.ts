/** `list.push(...more)` for lists of any length: a call takes only some 120,000 arguments. */
export function append<T>(list: T[], more: Iterable<T>): void {
  for (const entry of more) list.push(entry);
}
