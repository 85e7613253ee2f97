/** On every answer, pages and refusals included: it is what it says it is, and nobody shows it in a frame. */
export const SAFE_HEADERS: readonly (readonly [name: string, value: string])[] = [
  ['x-content-type-options', 'nosniff'],
  ['x-frame-options', 'DENY'],
];
