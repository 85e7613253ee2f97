/** The answer of `/responses/compact`: passed on as it came; only whether it is one, and what it used, is read here. */
import { havingUsed, upstreamFault } from '../../canonical/error.ts';
import { isObject, type JsonValue } from '../../canonical/json.ts';
import type { Usage } from '../../canonical/usage.ts';
import { tryInSteps } from '../../json/parse-in-steps.ts';
import type { Steps } from '../../steps.ts';
import { errorOf, readUsage } from './outcome.ts';

export interface Compaction {
  /** As it came. */
  readonly body: string;
  readonly output: readonly JsonValue[];
  readonly usage: Usage | undefined;
}

/** Throws GatewayError blaming the upstream for anything but an object with an `output` array (spec rule 15). */
export function* readCompaction(text: string): Steps<Compaction> {
  const json = yield* tryInSteps(text);
  if (!isObject(json)) throw undecodable();
  if (json['error'] !== undefined && json['error'] !== null) throw havingUsed(errorOf(json['error'], text), readUsage(json));
  if (!Array.isArray(json['output'])) throw undecodable();
  return { body: text, output: json['output'], usage: readUsage(json) };
}

function undecodable() {
  return upstreamFault('undecodable', 'The upstream answered with something that is no compaction.');
}
