/** Results as JSON: what `--json` prints and the admin API answers. */

/** Bigints become strings, and maps objects. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) => {
    if (typeof member === 'bigint') return member.toString();
    return member instanceof Map ? Object.fromEntries(member) : member;
  });
}
