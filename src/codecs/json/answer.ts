/** Reads the body of a whole answer as a JSON object, for endpoints that have no dialect of their own. */
import { GatewayError, upstreamFault } from '../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue, parseJson } from '../canonical/json.ts';

/** How much of an unreadable body goes to the log. */
const LOGGED_CHARS = 4096;

/** Throws an upstream fault for anything but an object. */
export function readJsonAnswer(text: string): JsonObject {
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
