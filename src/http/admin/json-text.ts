/** Results as JSON: what `--json` prints and the admin API answers. */
import { Steps } from '../../store/steps.ts';

/** Bigints become strings, and maps objects. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) => {
    if (typeof member === 'bigint') return member.toString();
    return member instanceof Map ? Object.fromEntries(member) : member;
  });
}

/** {@link jsonText} of what may hold long lists as its members: these are written row by row, and nobody else waits for it. */
export async function jsonTextInSteps(value: unknown): Promise<string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof Map) return jsonText(value);
  const steps = new Steps();
  const members: string[] = [];
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue;
    members.push(
      `${JSON.stringify(name)}:${Array.isArray(member) ? await listText(member, (row) => row, steps) : jsonText(member)}`,
    );
  }
  return `{${members.join()}}`;
}

/** The text of a list that may be long, whose rows are shown as `of` makes them. */
export async function listText<Row>(rows: readonly Row[], of: (row: Row) => unknown, steps = new Steps()): Promise<string> {
  const texts: string[] = [];
  for (const row of rows) {
    texts.push(jsonText(of(row)));
    if (steps.isOver) await steps.next();
  }
  return `[${texts.join()}]`;
}
