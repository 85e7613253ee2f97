/** Stages whose every reaction is written down, for laws about the wiring between stages. */
import type { SealingStage } from '../../src/streams/stage.ts';

/** What a scripted stage does with its n-th input (the last entry of a script is for its end). */
export interface Reaction {
  /** How many words it says. */
  readonly words: number;
  readonly next: 'go on' | 'throw' | 'end';
}

export interface ScriptedStage extends SealingStage<string, string, string> {
  /** What was called, for order laws: `push`, `end`, `fail`. */
  readonly calls: readonly string[];
}

/** Words are `name(input)#k`; ending adds `name.END`, failing `name.FAIL(reason)`. Beyond the script an input gives one word. */
export function scripted(name: string, script: readonly Reaction[]): ScriptedStage {
  const calls: string[] = [];
  let ended = false;
  let at = 0;
  const react = (input: string, reaction: Reaction, out: string[]): void => {
    for (let k = 0; k < reaction.words; k++) out.push(`${name}(${input})#${k}`);
    if (reaction.next === 'throw') throw new Error(`${name} refuses ${input}`);
    if (reaction.next === 'end') {
      ended = true;
      out.push(`${name}.END`);
    }
  };
  return {
    calls,
    get ended() {
      return ended;
    },
    push(input, out) {
      calls.push('push');
      react(input, script[at++] ?? { words: 1, next: 'go on' }, out);
    },
    end(out) {
      calls.push('end');
      react('eof', script.at(-1) ?? { words: 1, next: 'go on' }, out);
    },
    fail(reason, out) {
      calls.push('fail');
      if (ended) return;
      ended = true;
      out.push(`${name}.FAIL(${reason})`);
    },
  };
}
