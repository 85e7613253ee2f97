/** Scripts that come from outside, as JSON in a header or on the control path. */
import { isObject, type JsonValue, parseJson } from './json.ts';
import type { Script } from './script.ts';

/** The script in `x-sim-script`: JSON, or `b64:` and base64 of it. `undefined`: no header. Throws on a bad one. */
export function scriptFromHeader(value: string | undefined): Script | undefined {
  if (value === undefined) return undefined;
  const text = value.startsWith('b64:') ? Buffer.from(value.slice(4), 'base64').toString('utf8') : value;
  return asScript(parseJson(text));
}

const MEMBERS = new Set(['times', 'reply', 'raw', 'pace', 'faults', 'chat', 'strict', 'headers', 'video']);

/** Checks the outer shape only: whoever scripts a simulator means it. Throws on what cannot be a script. */
export function asScript(value: JsonValue | undefined): Script {
  if (!isObject(value)) throw new Error('a simulator script is a JSON object');
  for (const name of Object.keys(value)) {
    if (!MEMBERS.has(name)) throw new Error(`a simulator script has no member ${name}`);
  }
  const { reply, faults, raw } = value;
  if (reply !== undefined && !(isObject(reply) && Array.isArray(reply.pieces))) throw new Error('reply.pieces must be an array');
  if (faults !== undefined && !Array.isArray(faults)) throw new Error('faults must be an array');
  if (raw !== undefined && !isObject(raw)) throw new Error('raw must be an object');
  return value as Script;
}
