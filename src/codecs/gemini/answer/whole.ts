/** A whole body: one chunk, or a JSON array with all chunks of a stream. */
import { upstreamFault } from '../../canonical/error.ts';
import type { CanonicalEvent, Step } from '../../canonical/event.ts';
import { isObject, type JsonObject, tryJson } from '../../canonical/json.ts';
import type { DecodeContext } from '../../codec.ts';
import { sliceElements } from '../../json/text.ts';
import { GenerateContentDecoder } from './decode.ts';

/**
 * Throws `undecodable` for what holds no object, `empty` for an answer without candidates, `truncated` without a finish reason.
 */
export function decodeResponse(text: string, context: DecodeContext): Step {
  const body = tryJson(text);
  const chunks = Array.isArray(body) ? body : [body];
  if (chunks.length === 0 || !chunks.every(isObject)) {
    throw upstreamFault('undecodable', "The upstream's answer is not a JSON object.", { text });
  }
  const decoder = new GenerateContentDecoder(context);
  const steps: Step[] = [];
  const texts = Array.isArray(body) ? (sliceElements(text, []) ?? []) : [text];
  for (const data of texts) decoder.push({ event: undefined, data }, steps);
  if (!decoder.ended && !chunks.some(hasCandidate)) {
    throw upstreamFault('empty', 'The upstream answered without a candidate.', { text });
  }
  decoder.end(steps);
  const events: CanonicalEvent[] = steps.flatMap((step) => step.events);
  return { events };
}

function hasCandidate({ candidates }: JsonObject): boolean {
  return Array.isArray(candidates) && candidates.length > 0;
}
