/**
 * The members without those that are undefined: optional members are left out, never undefined (`exactOptionalPropertyTypes`).
 */
export function defined<T extends object>(members: { [K in keyof T]: T[K] | undefined }): Partial<T> {
  const kept: Partial<T> = {};
  for (const key in members) {
    const value = members[key];
    if (value !== undefined) kept[key] = value;
  }
  return kept;
}
