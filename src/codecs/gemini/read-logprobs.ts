/** `logprobsResult`: two lists that run in parallel over the decoding steps. Bytes are computed, the wire has none. */
import type { TokenLogprob } from '../canonical/item.ts';
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

function readToken(value: JsonValue): { token: string; logprob: number; bytes: readonly number[] } {
  if (!isObject(value)) throw malformed('logprobsResult');
  // Zero and the empty string are left out by this protocol.
  const { token = '', logProbability: logprob = 0 } = value;
  if (typeof token !== 'string' || typeof logprob !== 'number') throw malformed('logprobsResult');
  return { token, logprob, bytes: [...Buffer.from(token)] };
}
