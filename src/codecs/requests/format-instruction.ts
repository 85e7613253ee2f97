/** The format of an answer as words to the model, where the upstream has no member for it. */
import type { Format } from '../canonical/request.ts';

const ONLY = 'and nothing else: no other text, no code fence.';

/**
 * System text that asks for `format`; undefined where any text will do. `text`: the exact text of the client's schema, where
 * JSON.stringify would change it.
 */
export function formatInstruction(format: Format | undefined, text: string | undefined): string | undefined {
  if (format === undefined || format.type === 'text') return undefined;
  if (format.type === 'json_object' || format.schema === undefined) return `Answer with one JSON object ${ONLY}`;
  return `Answer with JSON that fits this JSON Schema, ${ONLY}\n${text ?? JSON.stringify(format.schema)}`;
}
