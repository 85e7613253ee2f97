/**
 * Rewrites a schema that JSON.stringify would change (keys that look like numbers move to the front, long integers lose digits)
 * without that change: such keys and numbers are marked while the schema is a value, and the marks are taken off its text again.
 */
import { isObject, type JsonObject } from '../canonical/json.ts';
import { parseInSteps } from '../json/parse-in-steps.ts';
import { writeInSteps } from '../json/write-in-steps.ts';
import { skipString } from '../json/text.ts';
import { endsStep, type Steps, whole } from '../steps.ts';

const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const MARK = '\\u0001';

/** The text of the rewritten schema; undefined where `rewrite` refuses it. */
export function* rewriteText(
  text: string,
  rewrite: (schema: JsonObject) => Steps<JsonObject | undefined>,
): Steps<string | undefined> {
  if (text.includes(MARK)) return undefined;
  const marked = yield* replaceTokens(
    text,
    (token) => (/^"\d+"$/.test(token) ? `"${MARK}\\"${token.slice(1, -1)}\\""` : token),
    (other) => other.replace(NUMBER, (token) => (String(Number(token)) === token ? token : `"${MARK}${token}"`)),
  );
  yield;
  const schema = yield* parseInSteps(marked);
  yield;
  const rewritten = isObject(schema) ? yield* rewrite(schema) : undefined;
  yield;
  const written = rewritten && (yield* writeInSteps(rewritten));
  yield;
  return written && (yield* unmarked(written));
}

/** The text of a value that may be marked. */
export const withoutMarks = whole(unmarked);

function* unmarked(text: string): Steps<string> {
  if (!text.includes(MARK)) return text;
  const prefix = `"${MARK}`;
  return yield* replaceTokens(
    text,
    (token) => (token.startsWith(prefix) ? token.slice(prefix.length, -1).replaceAll('\\"', '"') : token),
    (other) => other,
  );
}

/**
 * Valid JSON with each string and all that stands between strings replaced, in one pass. A pattern would run out of stack over
 * long strings.
 */
function* replaceTokens(text: string, string: (token: string) => string, between: (other: string) => string): Steps<string> {
  const pieces: string[] = [];
  let at = 0;
  for (let quote = text.indexOf('"'), tokens = 0; quote >= 0; quote = text.indexOf('"', at), tokens++) {
    if (endsStep(tokens)) yield;
    const end = skipString(text, quote);
    pieces.push(between(text.slice(at, quote)), string(text.slice(quote, end)));
    at = end;
  }
  pieces.push(between(text.slice(at)));
  return pieces.join('');
}
