/** How LRU caches of the gateway are bounded. */

/**
 * Options of a cache of at most so many entries, which grows with what is in it. The library's own `max` makes all its places at
 * once: 7 ms of a start for 100,000 of them, and memory that most gateways never fill.
 */
export const atMost = (entries: number): { readonly maxSize: number; readonly sizeCalculation: () => number } => ({
  maxSize: entries,
  sizeCalculation: () => 1,
});
