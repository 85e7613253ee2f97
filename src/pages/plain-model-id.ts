/** Ids that can stand in an example as they are, in JSON inside single quotes as in every other language. */
export function isPlainModelId(id: string): boolean {
  return /^[A-Za-z0-9](?:[A-Za-z0-9._:@/+-]{0,127})$/.test(id);
}
