/** Reads the body of a whole answer as a JSON object, for endpoints that have no dialect of their own. */
import { GatewayError, upstreamFault } from '../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue, parseJson } from '../canonical/json.ts';
import { type Steps, whole } from '../steps.ts';
import { boundsInSteps, tryInSteps } from './parse-in-steps.ts';

/** How much of an unreadable body goes to the log. */
const LOGGED_CHARS = 4096;

/** Throws an upstream fault for a text of too many values. */
const checkBounds = whole(boundsInSteps);

/** Throws an upstream fault for anything but an object, and for one of too many values. */
export function readJsonAnswer(text: string): JsonObject {
  checkBounds(text);
  let json: JsonValue;
  try {
    json = parseJson(text);
  } catch (cause) {
    throw noJson(text, cause);
  }
  return objectOf(json, text);
}

/** {@link readJsonAnswer} in steps. */
export function* readJsonAnswerInSteps(text: string): Steps<JsonObject> {
  yield* boundsInSteps(text);
  const json = yield* tryInSteps(text);
  if (json === undefined) throw noJson(text);
  return objectOf(json, text);
}

function noJson(text: string, cause?: unknown): GatewayError {
  return new GatewayError('upstream_error', 'The upstream did not answer with JSON.', {
    reason: 'undecodable',
    upstream: { text: text.slice(0, LOGGED_CHARS) },
    ...(cause === undefined ? {} : { cause }),
  });
}

function objectOf(json: JsonValue, text: string): JsonObject {
  if (isObject(json)) return json;
  const logged = { text: text.slice(0, LOGGED_CHARS) };
  throw upstreamFault('undecodable', 'The upstream did not answer with a JSON object.', logged);
}
