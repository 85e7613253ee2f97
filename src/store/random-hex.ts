/** 32 hex characters from the injected source of randomness: the body of every id that the store mints. */
export function randomHex(randomBytes: (size: number) => Uint8Array): string {
  return Buffer.from(randomBytes(16)).toString('hex');
}
