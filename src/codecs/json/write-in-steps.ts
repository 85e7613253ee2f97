/** `JSON.stringify` in steps: values of many members are written in pieces, each by the engine. */
import { isObject, type JsonValue } from '../canonical/json.ts';
import { endsStep, type Steps } from '../steps.ts';

/** What has fewer values is written in one go: less than a millisecond. */
const PIECE = 2_000;

/** The text of a value that is not undefined, without members that are. */
export function* writeInSteps(value: JsonValue): Steps<string> {
  return yield* write(value, new Set());
}

/** `large`: containers that are known to hold many values. */
function* write(value: JsonValue, large: Set<JsonValue>): Steps<string> {
  if (!large.has(value) && count(value, large, PIECE) < PIECE) return JSON.stringify(value);
  const pieces: string[] = [];
  if (Array.isArray(value)) {
    for (const [index, element] of value.entries()) {
      if (endsStep(index)) yield;
      pieces.push(isContainer(element) ? yield* write(element, large) : (JSON.stringify(element) ?? 'null'));
    }
    return `[${pieces.join()}]`;
  }
  if (!isObject(value)) return JSON.stringify(value);
  for (const [index, name] of Object.keys(value).entries()) {
    if (endsStep(index)) yield;
    const member = value[name];
    if (member === undefined) continue;
    const text = isContainer(member) ? yield* write(member, large) : JSON.stringify(member);
    pieces.push(`${JSON.stringify(name)}:${text}`);
  }
  return `{${pieces.join()}}`;
}

const isContainer = (value: JsonValue | undefined): boolean => typeof value === 'object' && value !== null;

/** The values in a value, itself included, up to `most`: what is behind is not looked at. Containers of so many are added to `large`. */
function count(value: JsonValue | undefined, large: Set<JsonValue>, most: number): number {
  if (typeof value !== 'object' || value === null) return 1;
  const children = Array.isArray(value) ? value.length : Object.keys(value).length;
  let values = 1 + children;
  const each = (child: JsonValue | undefined): void => {
    if (values < most && isContainer(child)) values += count(child, large, most - values) - 1;
  };
  if (values < most) for (const child of Array.isArray(value) ? value : Object.values(value)) each(child);
  if (values >= PIECE) large.add(value);
  return values;
}
