/** A whole body: one chunk, or a JSON array with all chunks of a stream. */
import { upstreamFault } from '../../canonical/error.ts';
import type { CanonicalEvent, Step } from '../../canonical/event.ts';
import { isObject, type JsonObject } from '../../canonical/json.ts';
import type { DecodeContext } from '../../codec.ts';
import { tryInSteps } from '../../json/parse-in-steps.ts';
import { sliceElements } from '../../json/text.ts';
import { endsStep, type Steps } from '../../steps.ts';
import { GenerateContentDecoder } from './decode.ts';

/**
 * Throws `undecodable` for what holds no object, `empty` for an answer without candidates, `truncated` without a finish reason.
 */
export function* decodeInSteps(text: string, context: DecodeContext): Steps<Step> {
  const body = yield* tryInSteps(text);
  yield;
  const chunks = Array.isArray(body) ? body : [body];
  if (chunks.length === 0 || !chunks.every(isObject)) {
    throw upstreamFault('undecodable', "The upstream's answer is not a JSON object.", { text });
  }
  const decoder = new GenerateContentDecoder(context);
  const steps: Step[] = [];
  const texts = Array.isArray(body) ? (sliceElements(text, []) ?? []) : [text];
  for (const [at, data] of texts.entries()) {
    if (endsStep(at)) yield;
    const json = chunks[at];
    decoder.push({ event: undefined, data, ...(json === undefined ? {} : { json }) }, steps);
  }
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
