/** What the tests of the mutation tool change. Which of two equal numbers comes back makes no difference. */
export function larger(a: number, b: number): number {
  return a >= b ? a : b;
}
