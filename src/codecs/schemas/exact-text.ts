/**
 * Rewrites a schema that JSON.stringify would change (keys that look like numbers move to the front, long integers lose digits) without that
 * change: such keys and numbers are marked while the schema is a value, and the marks are taken off its text again.
 */
import { isObject, type JsonObject, parseJson } from '../canonical/json.ts';

const TOKENS = /"((?:[^"\\]|\\.)*)"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const MARKED = /"\\u0001((?:[^"\\]|\\.)*)"/g;

/** The text of the rewritten schema; undefined where `rewrite` refuses it. */
export function rewriteText(text: string, rewrite: (schema: JsonObject) => JsonObject | undefined): string | undefined {
  if (text.includes('\\u0001')) return undefined;
  const marked = text.replace(TOKENS, (token, content: string | undefined) => {
    if (content !== undefined) return /^\d+$/.test(content) ? `"\\u0001\\"${content}\\""` : token;
    return String(Number(token)) === token ? token : `"\\u0001${token}"`;
  });
  const schema = parseJson(marked);
  const rewritten = isObject(schema) ? rewrite(schema) : undefined;
  return rewritten && withoutMarks(JSON.stringify(rewritten));
}

/** The text of a value that may be marked. */
export function withoutMarks(text: string): string {
  return text.includes('\\u0001') ? text.replace(MARKED, (_, content: string) => content.replaceAll('\\"', '"')) : text;
}
