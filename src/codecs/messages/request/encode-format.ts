/**
 * The format of an answer for a messages upstream: the vendor's own where its subset of JSON Schema can say it, else an
 * instruction to the model, since a request that the vendor refuses helps nobody.
 */
import type { JsonObject } from '../../canonical/json.ts';
import type { Format } from '../../canonical/request.ts';
import { defined } from '../../defined.ts';
import { formatInstruction } from '../../requests/format-instruction.ts';
import { rewriteText } from '../../schemas/exact-text.ts';
import { lowerForMessages } from '../../schemas/messages-subset.ts';
import { writeInSteps } from '../../json/write-in-steps.ts';
import type { Steps } from '../../steps.ts';

export interface EncodedFormat {
  /** The JSON text of the schema of `output_config.format`. */
  readonly schema?: string;
  /** System text. */
  readonly instruction?: string;
}

/** `text`: the exact text of the client's schema, where JSON.stringify would change it. */
export function* encodeFormat(format: Format | undefined, text: string | undefined): Steps<EncodedFormat> {
  if (format === undefined || format.type === 'text') return {};
  const schema =
    format.type === 'json_object' || format.schema === undefined ? undefined : yield* loweredText(format.schema, text);
  return schema === undefined ? defined({ instruction: formatInstruction(format, text) }) : { schema };
}

/** The text of the schema as the vendor takes it; undefined where its subset cannot say what the schema means. */
export function* loweredText(schema: JsonObject, text: string | undefined): Steps<string | undefined> {
  if (text !== undefined) return yield* rewriteText(text, lower);
  const lowered = yield* lower(schema);
  return lowered && (yield* writeInSteps(lowered));
}

function* lower(original: JsonObject): Steps<JsonObject | undefined> {
  const { schema, isFaithful } = yield* lowerForMessages(original);
  return isFaithful ? schema : undefined;
}
