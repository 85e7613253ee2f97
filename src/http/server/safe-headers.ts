/** On every response, pages and errors included: no content sniffing, no framing. */
export const SAFE_HEADERS: readonly (readonly [name: string, value: string])[] = [
  ['x-content-type-options', 'nosniff'],
  ['x-frame-options', 'DENY'],
];
