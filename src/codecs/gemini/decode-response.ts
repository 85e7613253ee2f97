/** A whole `generateContent` body: one chunk, then its end. */
import { upstreamFault } from '../canonical/error.ts';
import type { CanonicalEvent, Step } from '../canonical/event.ts';
import { isObject, type JsonValue, parseJson } from '../canonical/json.ts';
import type { DecodeContext } from '../codec.ts';
import { GenerateContentDecoder } from './decode-events.ts';

/** Throws `undecodable` for what is no object, `empty` for an answer without candidates, `truncated` without a finish reason. */
export function decodeResponse(text: string, context: DecodeContext): Step {
  const body = parsed(text);
  if (!isObject(body)) throw upstreamFault('undecodable', "The upstream's answer is not a JSON object.", { text });
  const decoder = new GenerateContentDecoder(context);
  const steps: Step[] = [];
  decoder.push({ event: undefined, data: text }, steps);
  const candidates = body['candidates'];
  if (!decoder.ended && !(Array.isArray(candidates) && candidates.length > 0)) {
    throw upstreamFault('empty', 'The upstream answered without a candidate.', { text });
  }
  decoder.end(steps);
  const events: CanonicalEvent[] = steps.flatMap((step) => step.events);
  return { events };
}

function parsed(text: string): JsonValue | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
