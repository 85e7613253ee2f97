/** Prints a transition table as a Mermaid state diagram, so that the documentation cannot disagree with the code. */
import { illegal, type Transitions } from '../../src/streams/lifecycle.ts';

/** The first row is the start. Events that lead from one state to the same other one share an arrow. */
export function mermaid<State extends string, Event extends string>(table: Transitions<State, Event>): string {
  const rows = Object.entries<Transitions<State, Event>[State]>(table);
  const lines = ['stateDiagram-v2'];
  if (rows[0] !== undefined) lines.push(`    [*] --> ${rows[0][0]}`);
  for (const [state, row] of rows) {
    const arrows = new Map<string, string[]>();
    for (const [event, target] of Object.entries<State | typeof illegal>(row)) {
      if (target === illegal) continue;
      arrows.set(target, [...(arrows.get(target) ?? []), event]);
    }
    for (const [target, events] of arrows) lines.push(`    ${state} --> ${target}: ${events.join(', ')}`);
    if (arrows.size === 0) lines.push(`    ${state} --> [*]`);
  }
  return `${lines.join('\n')}\n`;
}
