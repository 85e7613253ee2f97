/** The circuit of a Channel, or of one model of it: what is known of it, and how it may move. */
import { illegal as no, type Transitions } from '../../streams/lifecycle.ts';

/** closed: everything passes. open: nothing until the cooldown is over. trying: a trial is under way, which may take as long. */
export const CIRCUIT = {
  closed: { open: 'open', try: no, close: 'closed', release: 'closed' },
  open: { open: 'open', try: 'trying', close: 'closed', release: 'open' },
  trying: { open: 'open', try: 'trying', close: 'closed', release: 'open' },
} as const satisfies Transitions<'closed' | 'open' | 'trying', 'open' | 'try' | 'close' | 'release'>;
export type CircuitState = keyof typeof CIRCUIT;

export interface Circuit {
  readonly channelId: string;
  /** Absent: the Channel as a whole. */
  readonly model: string | undefined;
  state: CircuitState;
  openUntil: number;
  /** It is open because the upstream said that the rate is too high, and for nothing else. */
  isLimited: boolean;
  /** Results in the window, oldest first. */
  results: { readonly at: number; readonly good: boolean }[];
}

/** Enough to judge by; a busy Channel does not need more. */
const MAX_RESULTS = 200;

export function newCircuit(channelId: string, model: string | undefined): Circuit {
  return { channelId, model, state: 'closed', openUntil: 0, isLimited: false, results: [] };
}

/** Not opened anew since its cooldown was over. */
export const isTried = ({ state, openUntil }: Circuit, now: number) =>
  state === 'trying' || (state === 'open' && now >= openUntil);

/** What an upstream has let in for so long is not over its rate: nobody else need wait either. */
export const isLettingIn = ({ isLimited, state, openUntil }: Circuit, now: number) =>
  isLimited && state === 'trying' && now >= openUntil;

export function note(circuit: Circuit, at: number, good: boolean): void {
  circuit.results.push({ at, good });
  if (circuit.results.length > MAX_RESULTS) circuit.results.shift();
}

export function keyOfCircuit({ channelId, model }: Circuit): string {
  return model === undefined ? channelId : keyOf(channelId, model);
}

/** Channel ids hold no line end. */
export function keyOf(channelId: string, model: string): string {
  return `${channelId}\n${model}`;
}
