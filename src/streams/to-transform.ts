/**
 * Carries a stage in a pair of Web Streams, batch by batch. The gateway itself pumps (`pump.ts`); this is the form that the law
 * of the pump compares with, and that others may pipe.
 */
import { createHop } from './hop.ts';
import type { Stage } from './stage.ts';

/**
 * Runs `stage` on every batch that its reader asks for. A stage that throws: its output before that is handed over, then the
 * readable fails with the same reason and the source is cancelled. A stage that has ended: its last output is handed over, the
 * readable closes, and the source is cancelled with reason `ended`.
 */
export function toTransform<In, Out>(stage: Stage<In, Out>): TransformStream<readonly In[], readonly Out[]> {
  return createHop({
    get over() {
      return stage.ended;
    },
    push(batch: readonly In[], out: Out[]) {
      for (const input of batch) {
        if (stage.ended) break;
        stage.push(input, out);
      }
    },
    end(out) {
      if (!stage.ended) stage.end(out);
    },
  });
}
