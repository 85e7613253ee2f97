/** The counters of a usage row that both stores keep as whole numbers, each made by `count`. */
import type fc from 'fast-check';

export const tokenCounts = (count: fc.Arbitrary<number>) => ({
  input: count,
  cachedInput: count,
  cacheWrite5m: count,
  cacheWrite1h: count,
  cacheWriteUnsplit: count,
  output: count,
  reasoning: count,
  imageInput: count,
  imageOutput: count,
  images: count,
});
