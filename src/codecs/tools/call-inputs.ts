/**
 * The inputs of the calls in a history, each of which another protocol takes as a JSON object. Whether a text is one only its
 * parser knows, and a long text may hold so many values that parsing it keeps everybody waiting and fills the memory: long ones
 * are read in steps ahead of the encoder, and nothing of them is kept.
 */
import type { Item, ToolCallItem } from '../canonical/item.ts';
import { isObject, isObjectText, tryJson } from '../canonical/json.ts';
import { isObjectInSteps, parseInSteps } from '../json/parse-in-steps.ts';
import type { Steps } from '../steps.ts';
import { isEmptyInput, NO_ARGUMENTS } from './arguments.ts';

/** Shorter texts are read where they are written, 256 of them in a step. */
const LONG = 1_024;
/** Characters that are read in a step: a millisecond. */
const STEP = 32 * 1_024;

/** What was read of long inputs. */
const READ = new WeakMap<ToolCallItem, string | undefined>();

/** Reads the long inputs of these items. To be done before {@link objectInput} is asked for any of them. */
export function* readCallInputs(items: readonly Item[]): Steps<void> {
  let left = STEP;
  for (const item of items) {
    if (item.kind !== 'toolCall' || item.input.length < LONG || READ.has(item)) continue;
    if (left < item.input.length) yield;
    left = left < item.input.length ? STEP : left;
    left -= item.input.length;
    READ.set(item, yield* objectTextInSteps(item.input));
  }
}

/** {@link objectText} of an input. */
export function objectInput(item: ToolCallItem): string | undefined {
  return READ.has(item) ? READ.get(item) : objectText(item.input);
}

/** True where the input itself is the text of a JSON object. */
export function isObjectInput(item: ToolCallItem): boolean {
  return READ.has(item) ? READ.get(item) === item.input : isObjectText(item.input);
}

/**
 * The text of a JSON object: the text itself, `{}` for null and for nothing, or what a JSON string holds. Undefined for anything
 * else.
 */
export function objectText(text: string): string | undefined {
  if (isEmptyInput(text)) return NO_ARGUMENTS;
  const value = tryJson(text);
  if (isObject(value)) return text;
  return typeof value === 'string' && isObjectText(value) ? value : undefined;
}

function* objectTextInSteps(text: string): Steps<string | undefined> {
  if (yield* isObjectInSteps(text)) return text;
  if (!text.trimStart().startsWith('"')) return undefined;
  const held = yield* parsedOrNothing(text);
  return typeof held === 'string' && (yield* isObjectInSteps(held)) ? held : undefined;
}

function* parsedOrNothing(text: string): Steps<unknown> {
  try {
    return yield* parseInSteps(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
