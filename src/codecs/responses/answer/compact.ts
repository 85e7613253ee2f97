/** The answer of `/responses/compact`: passed on as it came; only whether it is one, and what it used, is read here. */
import { havingUsed, upstreamFault } from '../../canonical/error.ts';
import { isObject, type JsonValue } from '../../canonical/json.ts';
import type { Whole } from '../../canonical/fold.ts';
import type { Served, Usage } from '../../canonical/usage.ts';
import { tryInSteps } from '../../json/parse-in-steps.ts';
import type { Steps } from '../../steps.ts';
import { errorOf, readUsage } from './outcome.ts';
import { nonEmptyString } from '../wire.ts';

export interface Compaction {
  /** As it came. */
  readonly body: string;
  /** What was generated for it, to count where no usage was reported: neither the user's own messages nor an envelope. */
  readonly generated: Whole;
  readonly usage: Usage | undefined;
  readonly served: Served | undefined;
}

/** Throws GatewayError blaming the upstream for anything but an object with an `output` array (spec rule 15). */
export function* readCompaction(text: string): Steps<Compaction> {
  const json = yield* tryInSteps(text);
  if (!isObject(json)) throw undecodable();
  if (json['error'] !== undefined && json['error'] !== null) throw havingUsed(errorOf(json['error'], text), readUsage(json));
  if (!Array.isArray(json['output'])) throw undecodable();
  const tier = nonEmptyString(json, 'service_tier');
  const served = tier === undefined ? undefined : { serviceTier: tier };
  return { body: text, generated: generatedOf(json['output']), usage: readUsage(json), served };
}

function generatedOf(output: readonly JsonValue[]): Whole {
  const made = output.filter((item) => !isObject(item) || item['role'] !== 'user');
  const items = made.map((body) => ({
    item: { kind: 'native' as const, dialect: 'responses' as const, body },
    status: 'completed' as const,
  }));
  return { items, outcome: { status: 'completed', stop: 'end' } };
}

function undecodable() {
  return upstreamFault('undecodable', 'The upstream answered with something that is no compaction.');
}
