/** The list of image models that a router publishes; also what its health is checked with. */
import { upstreamFault } from '../canonical/error.ts';
import { isObject } from '../canonical/json.ts';
import { readJsonAnswer } from '../json/answer.ts';

/** Appended to the Channel's versioned base URL. */
export const ROUTER_MODELS_PATH = '/images/models';

/** The ids of `{data: [{id, …}]}`. Throws an upstream fault for anything else. */
export function decodeModelList(text: string): string[] {
  const { data } = readJsonAnswer(text);
  if (!Array.isArray(data)) throw upstreamFault('undecodable', 'The upstream answered without a list of models.');
  return data.flatMap((entry) => (isObject(entry) && typeof entry['id'] === 'string' ? [entry['id']] : []));
}
