/**
 * Reads `logprobsResult`: two lists that run in parallel over the decoding steps. The wire has no bytes, so they are computed.
 */
import type { Logprobs, TokenLogprob } from '../../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { arrayOrEmpty, malformed, optionalObject } from './decode-chunk.ts';

export function readLogprobs(candidate: JsonObject): readonly TokenLogprob[] {
  const result = optionalObject(candidate, 'logprobsResult');
  if (result === undefined) return [];
  const steps = arrayOrEmpty(result, 'topCandidates');
  return arrayOrEmpty(result, 'chosenCandidates').map((chosen, index): TokenLogprob => {
    const step = steps[index];
    if (step === undefined) return readToken(chosen);
    if (!isObject(step)) throw malformed('topCandidates');
    return { ...readToken(chosen), top: arrayOrEmpty(step, 'candidates').map(readToken) };
  });
}

const NONE: ReadonlyMap<JsonObject, Logprobs> = new Map();

/** The tokens of each visible text among these parts; empty where tokens and texts do not line up. */
export function tokensOfParts(parts: readonly JsonObject[], logprobs: Logprobs): ReadonlyMap<JsonObject, Logprobs> {
  if (logprobs.length === 0) return NONE;
  const tokens = new Map<JsonObject, Logprobs>();
  let next = 0;
  for (const part of parts) {
    const text = part['text'];
    if (typeof text !== 'string' || text === '' || part['thought'] === true) continue;
    const start = next;
    let joined = '';
    for (let token = logprobs[next]?.token; token !== undefined; token = logprobs[++next]?.token) {
      if (joined.length >= text.length && token !== '') break;
      joined += token;
    }
    if (joined !== text) return NONE;
    tokens.set(part, logprobs.slice(start, next));
  }
  return next === logprobs.length ? tokens : NONE;
}

function readToken(value: JsonValue): { token: string; logprob: number; bytes: readonly number[] } {
  if (!isObject(value)) throw malformed('logprobsResult');
  // The protocol leaves out zeros and empty strings.
  const { token = '', logProbability: logprob = 0 } = value;
  if (typeof token !== 'string' || typeof logprob !== 'number') throw malformed('logprobsResult');
  return { token, logprob, bytes: [...Buffer.from(token)] };
}
