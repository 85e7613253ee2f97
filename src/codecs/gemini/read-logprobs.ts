/** `logprobsResult`: two lists that run in parallel over the decoding steps. Bytes are computed, the wire has none. */
import type { Logprobs, TokenLogprob } from '../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { array, malformed, object } from './read-chunk.ts';

export function readLogprobs(candidate: JsonObject): readonly TokenLogprob[] {
  const result = object(candidate, 'logprobsResult');
  if (result === undefined) return [];
  const steps = array(result, 'topCandidates');
  return array(result, 'chosenCandidates').map((chosen, index): TokenLogprob => {
    const step = steps[index];
    if (step === undefined) return readToken(chosen);
    if (!isObject(step)) throw malformed('topCandidates');
    return { ...readToken(chosen), top: array(step, 'candidates').map(readToken) };
  });
}

const NONE: ReadonlyMap<JsonObject, Logprobs> = new Map();

/** The tokens of each visible text among these parts; none where they do not line up with them. */
export function tokensOfParts(parts: readonly JsonObject[], logprobs: Logprobs): ReadonlyMap<JsonObject, Logprobs> {
  if (logprobs.length === 0) return NONE;
  const said = new Map<JsonObject, Logprobs>();
  let next = 0;
  for (const part of parts) {
    const text = part['text'];
    if (typeof text !== 'string' || text === '' || part['thought'] === true) continue;
    const start = next;
    let spoken = '';
    for (let token = logprobs[next]?.token; token !== undefined; token = logprobs[++next]?.token) {
      if (spoken.length >= text.length && token !== '') break;
      spoken += token;
    }
    if (spoken !== text) return NONE;
    said.set(part, logprobs.slice(start, next));
  }
  return next === logprobs.length ? said : NONE;
}

function readToken(value: JsonValue): { token: string; logprob: number; bytes: readonly number[] } {
  if (!isObject(value)) throw malformed('logprobsResult');
  // Zero and the empty string are left out by this protocol.
  const { token = '', logProbability: logprob = 0 } = value;
  if (typeof token !== 'string' || typeof logprob !== 'number') throw malformed('logprobsResult');
  return { token, logprob, bytes: [...Buffer.from(token)] };
}
