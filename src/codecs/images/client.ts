/**
 * What clients of the image endpoints read: the JSON answer, the completion events of a stream, and its error event. Members that
 * the upstream did not report stay absent (spec, image rule 7).
 */
import type { GatewayError } from '../canonical/error.ts';
import type { JsonObject, JsonValue } from '../canonical/json.ts';
import type { Frame } from '../codec.ts';
import { writeInSteps } from '../json/write-in-steps.ts';
import { endsStep, type Steps, whole } from '../steps.ts';
import type { ImageAnswer, MadeImage } from './answer.ts';
import type { ImageOperation } from './request.ts';

/** `now` (Unix seconds) stands where no upstream gave a time. */
export const encodeImageAnswer = whole(encodeImageAnswerInSteps);

/** What the gateway calls: ten pictures together have tens of megabytes. */
export function* encodeImageAnswerInSteps(answer: ImageAnswer, now: number): Steps<string> {
  if (answer.native?.form === 'json') return answer.native.text;
  const { shared, own } = liftFacts(answer.images);
  const data: JsonObject[] = [];
  for (const [index, image] of answer.images.entries()) {
    if (endsStep(index)) yield;
    data.push({ ...contentOf(image), ...besideAt(image, index), ...own[index] });
  }
  return yield* writeInSteps({
    created: answer.created ?? now,
    ...shared,
    data,
    ...(answer.usage === undefined ? {} : { usage: answer.usage.shown }),
  });
}

/** One completion event a picture. The `[DONE]` that follows is {@link DONE}. */
export function encodeImageEvents(operation: ImageOperation, answer: ImageAnswer, now: number): Frame[] {
  const type = operation === 'edit' ? 'image_edit.completed' : 'image_generation.completed';
  const { native } = answer;
  if (native?.form === 'event' && saysType(native.text, type)) return [{ event: type, data: native.text }];
  const last = answer.images.length - 1;
  return answer.images.map((image, index) => ({
    event: type,
    data: JSON.stringify({
      type,
      created_at: answer.created ?? now,
      ...contentOf(image),
      ...image.facts,
      ...image.beside,
      ...(index === last && answer.usage !== undefined ? { usage: answer.usage.shown } : {}),
    }),
  }));
}

/** Design, "failure after it … images". */
export function encodeImageFailure(error: GatewayError, type: string): Frame {
  const body = { message: error.message, type, param: error.param, code: error.shownCode };
  return { event: 'error', data: JSON.stringify({ type: 'error', error: body }) };
}

/** Every image stream ends so, after an error too. */
export const DONE: Frame = { event: undefined, data: '[DONE]' };

/** A JSON text that names this type first of all; otherwise the event is written anew. */
function saysType(text: string, type: string): boolean {
  return new RegExp(`^\\s*\\{\\s*"type"\\s*:\\s*"${type.replace('.', '\\.')}"`).test(text);
}

/** A place that an upstream named (Together) counts its own pictures; here it is the one among all. */
function besideAt({ beside }: MadeImage, index: number): JsonObject {
  return typeof beside['index'] === 'number' ? { ...beside, index } : beside;
}

function contentOf({ data, url, revisedPrompt }: MadeImage): JsonObject {
  return {
    ...(data === undefined ? {} : { b64_json: data }),
    ...(url === undefined ? {} : { url }),
    ...(revisedPrompt === undefined ? {} : { revised_prompt: revisedPrompt }),
  };
}

/** What all pictures report alike stands once at the top; what they report differently stays with each. */
function liftFacts(images: readonly MadeImage[]): { readonly shared: JsonObject; readonly own: readonly JsonObject[] } {
  const [first, ...rest] = images;
  const shared = new Map<string, JsonValue>();
  for (const [name, value] of Object.entries(first?.facts ?? {})) {
    if (value === undefined) continue;
    // What one picture says is not compared: it may be long.
    const text = rest.length === 0 ? '' : JSON.stringify(value);
    if (rest.every(({ facts }) => Object.hasOwn(facts, name) && JSON.stringify(facts[name]) === text)) shared.set(name, value);
  }
  const own = images.map(({ facts }) => Object.fromEntries(Object.entries(facts).filter(([name]) => !shared.has(name))));
  return { shared: Object.fromEntries(shared), own };
}
