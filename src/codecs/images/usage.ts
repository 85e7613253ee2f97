/**
 * Usage of image upstreams, for the bill and for the client. Three spellings: the images API, a router's chat names, a responses
 * object. Servers that imitate the first two mix them up, so either is read wherever the other is missing: a report is never lost
 * by its names.
 */
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { countOf, isPrice, type Usage } from '../canonical/usage.ts';
import { defined } from '../defined.ts';
import { editJson, type JsonEdit } from '../json/edit.ts';
import { leaveOutPrices, pictureInput } from '../answers/token-usage.ts';
import type { ImageUsage } from './answer.ts';

/** `{input_tokens, input_tokens_details: {text_tokens, image_tokens}, output_tokens, …}`. */
export function imagesApiUsage(value: JsonValue | undefined): ImageUsage | undefined {
  const read = readTokens(value, TOKEN_NAMES);
  if (read === undefined || !isObject(value)) return routerUsage(value);
  const billed = { ...read.billed, native: value };
  if (!hasNumbers(value)) return { billed, shown: read.shown };
  return { billed, shown: Object.fromEntries(Object.entries(value).filter(([name]) => !isPrice(name))) };
}

/**
 * The text of an answer for a client as it is, but for prices. Undefined where its usage has names or counters that the client
 * does not read.
 */
export function withClientUsage(text: string, usage: JsonValue | undefined): string | undefined {
  if (!isObject(usage)) return text;
  const ours = readTokens(usage, TOKEN_NAMES);
  if (ours === undefined ? readTokens(usage, CHAT_NAMES) !== undefined : !hasNumbers(usage)) return undefined;
  const edits: JsonEdit[] = [];
  leaveOutPrices(usage, ['usage'], edits);
  return edits.length === 0 ? text : editJson(text, edits);
}

/** Some servers write counters as text. One that is missing is no text. */
function hasNumbers(usage: JsonObject): boolean {
  return [TOKEN_NAMES.input, TOKEN_NAMES.output, 'total_tokens'].every((name) => typeof usage[name] !== 'string');
}

/** A router writes `prompt_tokens` and `completion_tokens`; clients of the images API read the other names. */
export function routerUsage(value: JsonValue | undefined): ImageUsage | undefined {
  const read = readTokens(value, CHAT_NAMES) ?? readTokens(value, TOKEN_NAMES);
  if (read === undefined || !isObject(value)) return undefined;
  return { billed: { ...read.billed, native: value }, shown: read.shown };
}

/**
 * A responses object reports the picture's tokens apart from those of the model that called the tool (`tool_usage.image_gen`).
 * Both are billed; the client is shown the picture's, and the model's only where nothing else was reported.
 */
export function responsesUsage(usage: JsonValue | undefined, toolUsage: JsonValue | undefined): ImageUsage | undefined {
  const model = readTokens(usage, MODEL_NAMES);
  const reported = isObject(toolUsage) ? toolUsage['image_gen'] : undefined;
  const picture = readTokens(reported, TOKEN_NAMES);
  const native: JsonObject = { ...(isObject(usage) ? { usage } : {}), ...(isObject(toolUsage) ? { tool_usage: toolUsage } : {}) };
  if (picture !== undefined && isObject(reported)) {
    const shown = hasNumbers(reported) ? reported : picture.shown;
    return { billed: { ...add(picture.billed, model?.billed ?? {}), native }, shown };
  }
  return model === undefined ? undefined : { billed: { ...model.billed, native }, shown: model.shown };
}

interface Names {
  readonly input: string;
  readonly inputDetails: string;
  readonly output: string;
  readonly outputDetails: string;
  /** Without a split, all output is the picture. */
  readonly draws: boolean;
}
const TOKEN_NAMES: Names = {
  input: 'input_tokens',
  inputDetails: 'input_tokens_details',
  output: 'output_tokens',
  outputDetails: 'output_tokens_details',
  draws: true,
};
const MODEL_NAMES: Names = { ...TOKEN_NAMES, draws: false };
const CHAT_NAMES: Names = {
  input: 'prompt_tokens',
  inputDetails: 'prompt_tokens_details',
  output: 'completion_tokens',
  outputDetails: 'completion_tokens_details',
  draws: true,
};

/**
 * Undefined where no counter is reported. A negative or unreadable one counts as missing, and zeros alone stand for a count that
 * nobody made.
 */
function readTokens(value: JsonValue | undefined, names: Names): ImageUsage | undefined {
  if (!isObject(value)) return undefined;
  const total = countOf(value['total_tokens']);
  const reported = { input: countOf(value[names.input]), output: countOf(value[names.output]) };
  const input = reported.input ?? rest(total, reported.output);
  const output = reported.output ?? rest(total, reported.input);
  const [asked, made] = [input ?? 0, output ?? 0];
  if (asked + made === 0) return undefined;
  const inputDetails = objectOr(value[names.inputDetails]);
  const outputDetails = objectOr(value[names.outputDetails]);
  const { cacheRead, imageInput } = pictureInput(value, inputDetails, asked);
  const imageOutput = within(made, countOf(outputDetails['image_tokens']) ?? (names.draws ? output : undefined));
  return {
    billed: defined<Usage>({
      input: input === undefined ? undefined : input - cacheRead,
      cacheRead: cacheRead === 0 ? undefined : cacheRead,
      imageInput,
      output,
      reasoning: within(made, countOf(outputDetails['reasoning_tokens'])),
      imageOutput,
    }),
    shown: {
      input_tokens: asked,
      ...split('input_tokens_details', asked, within(asked, countOf(inputDetails['image_tokens']))),
      output_tokens: made,
      ...split('output_tokens_details', made, imageOutput),
      total_tokens: asked + made,
    },
  };
}

/** A part that is reported as more than the whole is all of it. */
function within(whole: number, part: number | undefined): number | undefined {
  return part === undefined ? undefined : Math.min(part, whole);
}

/** How many of the tokens are the picture's; nothing where no upstream told them apart. */
function split(name: string, tokens: number, images: number | undefined): JsonObject {
  return images === undefined ? {} : { [name]: { text_tokens: tokens - images, image_tokens: images } };
}

const SUMMED = ['input', 'cacheRead', 'output', 'reasoning', 'imageInput', 'imageOutput'] as const;

function add(left: Usage, right: Usage): Usage {
  const sums = SUMMED.map((name): [string, number] => [name, (left[name] ?? 0) + (right[name] ?? 0)]);
  return Object.fromEntries(sums.filter(([, sum]) => sum > 0));
}

function rest(total: number | undefined, part: number | undefined): number | undefined {
  return total === undefined || part === undefined || part > total ? undefined : total - part;
}

function objectOr(value: JsonValue | undefined): JsonObject {
  return isObject(value) ? value : {};
}
