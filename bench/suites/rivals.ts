/**
 * Other gateways beside this one and the pass-through: same upstream, load, machine and run. Named by `--rival`; without one
 * there is nothing to do.
 */
import type { Row } from '../harness/statistics.ts';
import { mixed, type MixedOptions } from './mixed.ts';

export async function rivals(rounds: number, options: MixedOptions): Promise<Row[]> {
  return options.rivals.length === 0 ? [] : await mixed(rounds, options, 'rivals');
}
