/** Reads the body of a whole answer as a JSON object, for endpoints that have no dialect of their own. */
import { GatewayError, upstreamFault } from '../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue, parseJson } from '../canonical/json.ts';
import { whole } from '../steps.ts';
import { boundsInSteps } from './parse-in-steps.ts';

/** How much of an unreadable body goes to the log. */
const LOGGED_CHARS = 4096;

/** Throws an upstream fault for a text of too many values. */
export const checkBounds = whole(boundsInSteps);

/** Throws an upstream fault for anything but an object, and for one of too many values. */
export function readJsonAnswer(text: string): JsonObject {
  checkBounds(text);
  let json: JsonValue;
  try {
    json = parseJson(text);
  } catch (cause) {
    throw new GatewayError('upstream_error', 'The upstream did not answer with JSON.', {
      reason: 'undecodable',
      upstream: { text: text.slice(0, LOGGED_CHARS) },
      cause,
    });
  }
  if (!isObject(json)) {
    const logged = { text: text.slice(0, LOGGED_CHARS) };
    throw upstreamFault('undecodable', 'The upstream did not answer with a JSON object.', logged);
  }
  return json;
}
