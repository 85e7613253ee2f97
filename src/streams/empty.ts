/**
 * Empties a list that is filled again with the next read. `length = 0` throws its store away, and the next `push` makes one for
 * seventeen entries; a list that is popped keeps a small one.
 */
export function empty(list: unknown[]): void {
  while (list.length > 0) list.pop();
}
