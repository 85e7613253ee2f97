/**
 * Token counts that no upstream reported: a rough estimate for reservations, and one by the tokenizer for answers without usage.
 * Media count a fixed number each, whatever their bytes.
 */
import type { Whole } from '../../codecs/canonical/fold.ts';
import type { Item, Media, Part } from '../../codecs/canonical/item.ts';
import { isObject, type JsonValue } from '../../codecs/canonical/json.ts';
import type { CanonicalRequest, SentRequest } from '../../codecs/canonical/request.ts';
import { defined } from '../../codecs/defined.ts';
import { isPlaceholder, type Served, totalInput, type Usage } from '../../codecs/canonical/usage.ts';
import type { Model } from '../config/config.ts';
import { BYTES_A_TOKEN, type Tokenizer } from './tokenizer.ts';
import { writeInSteps } from '../../codecs/json/write-in-steps.ts';
import { atOnce, endsStep, type Steps, whole } from '../../codecs/steps.ts';

/** An image at the usual detail: about what vendors publish for one megapixel. */
const IMAGE_TOKENS = 1_000;
/** Reserved for the output when neither the client nor the operator set a cap. */
const DEFAULT_OUTPUT = 4_096;
/** The cap of a model that has none configured: no vendor's is larger, and a client may ask for any number. */
export const LARGEST_OUTPUT = 131_072;

/** Receives the texts and media of a request or an answer. */
interface Count {
  text(text: string | undefined): void;
  /** Of no type: inside what only one protocol can read. */
  media(type?: Media['type']): void;
}

/** A rough estimate for a reservation: four characters a token, and a fixed number for each picture or file. */
export function* estimateInSteps(request: CanonicalRequest): Steps<number> {
  let chars = 0;
  let media = 0;
  yield* countRequest(request, {
    text(text) {
      chars += text?.length ?? 0;
    },
    media() {
      media += IMAGE_TOKENS;
    },
  });
  return Math.ceil(chars / BYTES_A_TOKEN) + media;
}

export const estimateInput = whole(estimateInSteps);

/**
 * The most output tokens that are reserved: the client's cap, else the model's, else a default; never more than the model can
 * generate. `isSummary`: a summary may be asked for, which the client's cap does not bound.
 */
export function estimateOutput({ maxOutputTokens: asked }: CanonicalRequest, model: Model, isSummary = false): number {
  const cap = model.maxOutputTokens ?? LARGEST_OUTPUT;
  const uncapped = model.maxOutputTokens ?? DEFAULT_OUTPUT;
  return Math.min(isSummary ? Math.max(asked ?? 0, uncapped) : (asked ?? uncapped), cap);
}

function toolText(tool: CanonicalRequest['tools'][number]): Steps<string> {
  return writeInSteps('body' in tool ? tool.body : { ...tool, at: undefined });
}

function* countRequest(request: SentRequest, count: Count): Steps<void> {
  for (const [index, item] of request.items.entries()) {
    if (endsStep(index)) yield;
    countItem(item, count);
  }
  for (const [index, tool] of request.tools.entries()) {
    if (endsStep(index)) yield;
    count.text(yield* toolText(tool));
  }
}

function countItem(item: Item, count: Count): void {
  switch (item.kind) {
    case 'text':
    case 'refusal':
      count.text(item.text);
      return;
    case 'reasoning':
      count.text(item.raw);
      for (const part of item.summary ?? []) count.text(part);
      return;
    case 'toolCall':
      count.text(item.tool.name);
      count.text(item.input);
      return;
    case 'toolResult':
      for (const part of item.content) countPart(part, count);
      return;
    case 'media':
      countMedia(item.media, count);
      return;
    case 'native':
      countNative(item.body, count);
      return;
  }
}

function countPart(part: Part, count: Count): void {
  if (part.kind === 'text') count.text(part.text);
  else if (part.kind === 'media') countMedia(part.media, count);
  else countNative(part.body, count);
}

function countMedia({ source, type }: Media, count: Count): void {
  if (source.from === 'text') count.text(source.text);
  else count.media(type);
}

/** Inline data of a native item: a screenshot, a video, a fetched document. */
const DATA_URL = /^data:[^,]{0,256};base64,/;

function countNative(body: JsonValue, count: Count): void {
  const text = JSON.stringify(body);
  count.text(text.includes('base64') ? JSON.stringify(body, withoutData) : text);

  function withoutData(_key: string, value: JsonValue): JsonValue | undefined {
    if (typeof value === 'string' && DATA_URL.test(value)) count.media();
    else if (isObject(value) && value['type'] === 'base64' && typeof value['data'] === 'string') count.media();
    else return value;
    return undefined;
  }
}

/**
 * The reported usage, with missing counts estimated and flagged (known failure U3: fill only the missing parts). There is always
 * input, and nothing is written by no tokens, so zeros are missing counts, unless passes beside the answer have all of them.
 */
export function completedUsage(
  tokenizer: Tokenizer,
  reported: Usage | undefined,
  request: SentRequest,
  whole: () => Whole,
): Usage | Promise<Usage> {
  if (reported === undefined) return countedUsage(tokenizer, request, whole());
  if (isCallsOnly(reported)) return countedUsage(tokenizer, request, whole()).then((counted) => ({ ...reported, ...counted }));
  const knowsInput = reported.extra !== undefined || (reported.input !== undefined && totalInput(reported) > 0);
  return knowsInput && knowsOutput(reported)
    ? reported
    : withCounted(reported, knowsInput, countedUsage(tokenizer, request, whole()));
}

function knowsOutput({ output = 0, extra }: Usage): boolean {
  return output > 0 || extra !== undefined;
}

/** The input without the cache: where a report leaves it out, what was counted of the whole, less what it says of the cache. */
export function inputOf(reported: Usage, counted: number): number {
  const known = totalInput(reported);
  return reported.input !== undefined && known > 0 ? reported.input : Math.max(0, counted - known);
}

/** Only tool calls were counted (perhaps by us); every token count is a placeholder zero. */
function isCallsOnly({ meters, ...tokens }: Usage): boolean {
  return meters !== undefined && meters.size > 0 && isPlaceholder(tokens);
}

async function withCounted(reported: Usage, knowsInput: boolean, counting: Promise<Usage>): Promise<Usage> {
  const counted = await counting;
  const { input = 0, output = 0, reasoning = 0 } = counted;
  const missing = {
    ...(knowsInput ? {} : { input: inputOf(reported, input) }),
    // Reasoning may be reported that nobody was shown.
    ...(knowsOutput(reported) ? {} : { output: output - reasoning + Math.max(reasoning, reported.reasoning ?? 0) }),
  };
  const isNothing = Object.values(missing).every((count) => count === 0);
  if (isNothing) return reported;
  const shares = { ...(knowsInput ? {} : inputShares(counted)), ...(knowsOutput(reported) ? {} : outputShares(counted)) };
  return { ...shares, ...reported, ...missing, estimated: true };
}

/** What of the counted input, and of the counted output, are pictures and sound: they have prices of their own. */
export function inputShares({ imageInput, audioInput }: Usage): Usage {
  return defined({ imageInput, audioInput });
}

export function outputShares({ imageOutput, audioOutput }: Usage): Usage {
  return defined({ imageOutput, audioOutput });
}

/** With what an answer said beside its usage of how it is served; the usage itself knows better. */
export function withServed(usage: Usage | Promise<Usage>, served: Served | undefined): Usage | Promise<Usage> {
  if (served === undefined) return usage;
  return usage instanceof Promise ? usage.then((known) => ({ ...served, ...known })) : { ...served, ...usage };
}

/** Adds the number of pictures in the answer, for a model priced by the picture: few upstreams count them (known failure I8). */
export function withPictures(usage: Usage, whole: Whole): Usage {
  if (usage.images !== undefined) return usage;
  const images = whole.items.filter(({ item }) => item.kind === 'media' && item.media.type === 'image').length;
  return images === 0 ? usage : { ...usage, images };
}

/** Usage of an answer that reported none: request and answer counted, and flagged as estimated. */
export async function countedUsage(tokenizer: Tokenizer, request: SentRequest, whole: Whole): Promise<Usage> {
  const reasoning: string[] = [];
  const items: Item[] = [];
  for (const { item } of whole.items) {
    if (item.kind === 'reasoning') reasoning.push(item.raw ?? (item.summary ?? []).join('\n'));
    else items.push(item);
  }
  const reasoningTokens = await tokenizer.count(reasoning.join('\n'));
  const output = await counted(tokenizer, '', (count) => {
    for (const item of items) countItem(item, count);
  });
  const input = await counted(tokenizer, '\n', (count) => atOnce(countRequest(request, count)));
  return {
    input: input.tokens,
    output: output.tokens + reasoningTokens,
    ...(reasoningTokens > 0 ? { reasoning: reasoningTokens } : {}),
    ...defined({
      imageInput: input.media.get('image'),
      audioInput: input.media.get('audio'),
      imageOutput: output.media.get('image'),
      audioOutput: output.media.get('audio'),
    }),
    estimated: true,
  };
}

interface Counted {
  readonly tokens: number;
  /** What of them is media, by their type. */
  readonly media: ReadonlyMap<Media['type'] | undefined, number>;
}

/** Tokens of the texts, joined by `between`, and of the media that `find` reports. */
async function counted(tokenizer: Tokenizer, between: string, find: (count: Count) => void): Promise<Counted> {
  const texts: string[] = [];
  const media = new Map<Media['type'] | undefined, number>();
  let tokens = 0;
  find({
    text(text) {
      if (text !== undefined) texts.push(text);
    },
    media(type) {
      tokens += IMAGE_TOKENS;
      media.set(type, (media.get(type) ?? 0) + IMAGE_TOKENS);
    },
  });
  return { tokens: tokens + (await tokenizer.count(texts.join(between))), media };
}
