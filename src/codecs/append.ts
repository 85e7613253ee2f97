/** `list.push(...more)` for any length: a call takes no more than some 120,000 arguments, and clients and upstreams make longer lists. */
export function append<T>(list: T[], more: Iterable<T>): void {
  for (const entry of more) list.push(entry);
}
