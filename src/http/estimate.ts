/**
 * Token counts where nobody reported any: cheap ones for reservations, counted ones (with a real tokenizer, loaded when it is first
 * needed) for answers whose usage never came. Media are counted by piece, never by their bytes.
 */
import type { Whole } from '../codecs/canonical/fold.ts';
import type { Item, Media, Part } from '../codecs/canonical/item.ts';
import type { CanonicalRequest, SentRequest } from '../codecs/canonical/request.ts';
import type { Usage } from '../codecs/canonical/usage.ts';
import type { Model } from './config/config.ts';

const BYTES_A_TOKEN = 4;
/** An image at the usual detail; the figure that vendors publish for one of about a megapixel. */
const IMAGE_TOKENS = 1_000;
/** The output that is reserved when neither the client nor the operator gave a cap. */
const DEFAULT_OUTPUT = 4_096;

export function estimateInput(request: CanonicalRequest): number {
  let bytes = 0;
  let media = 0;
  const count = (text: string | undefined): void => {
    bytes += text?.length ?? 0;
  };
  const countMedia = (found: Media): void => {
    if (found.source.from === 'text') count(found.source.text);
    else media += IMAGE_TOKENS;
  };
  for (const item of request.items) countItem(item, count, countMedia);
  for (const tool of request.tools) count(toolText(tool));
  return Math.ceil(bytes / BYTES_A_TOKEN) + media;
}

export function estimateOutput(request: CanonicalRequest, model: Model): number {
  return request.maxOutputTokens ?? model.maxOutputTokens ?? DEFAULT_OUTPUT;
}

function toolText(tool: CanonicalRequest['tools'][number]): string {
  return JSON.stringify('body' in tool ? tool.body : { ...tool, at: undefined });
}

function countItem(item: Item, count: (text: string | undefined) => void, countMedia: (media: Media) => void): void {
  switch (item.kind) {
    case 'text':
    case 'refusal':
      count(item.text);
      return;
    case 'reasoning':
      count(item.raw);
      for (const part of item.summary ?? []) count(part);
      return;
    case 'toolCall':
      count(item.tool.name);
      count(item.input);
      return;
    case 'toolResult':
      for (const part of item.content) countPart(part, count, countMedia);
      return;
    case 'media':
      countMedia(item.media);
      return;
    case 'native':
      count(JSON.stringify(item.body));
      return;
  }
}

function countPart(part: Part, count: (text: string | undefined) => void, countMedia: (media: Media) => void): void {
  if (part.kind === 'text') count(part.text);
  else if (part.kind === 'media') countMedia(part.media);
  else count(JSON.stringify(part.body));
}

/** Longer texts are counted by their bytes: a tokenizer would hold up the event loop. */
const MAX_COUNTED_CHARS = 64 * 1024;

type CountTokens = (text: string) => number;
let tokenizer: Promise<CountTokens> | undefined;

function loadTokenizer(): Promise<CountTokens> {
  tokenizer ??= import('gpt-tokenizer').then(
    ({ countTokens }) =>
      (text) =>
        countTokens(text, { disallowedSpecial: new Set() }),
  );
  return tokenizer;
}

async function countTokens(text: string): Promise<number> {
  if (text === '') return 0;
  if (text.length > MAX_COUNTED_CHARS) return Math.ceil(Buffer.byteLength(text) / BYTES_A_TOKEN);
  return (await loadTokenizer())(text);
}

/** A report with what it leaves out counted and flagged (known failure U3: fill only the missing parts). */
export function completedUsage(reported: Usage | undefined, request: SentRequest, whole: () => Whole): Usage | Promise<Usage> {
  if (reported === undefined) return countedUsage(request, whole());
  const { input, cacheRead, cacheWrite, cacheWrite5m, cacheWrite1h, output } = reported;
  const knowsInput = [input, cacheRead, cacheWrite, cacheWrite5m, cacheWrite1h].some((count) => count !== undefined);
  return knowsInput && output !== undefined ? reported : withCounted(reported, knowsInput, countedUsage(request, whole()));
}

async function withCounted(reported: Usage, knowsInput: boolean, counting: Promise<Usage>): Promise<Usage> {
  const counted = await counting;
  const missing = {
    ...(knowsInput ? {} : { input: counted.input ?? 0 }),
    ...(reported.output === undefined ? { output: counted.output ?? 0 } : {}),
  };
  const isNothing = Object.values(missing).every((count) => count === 0);
  return isNothing ? reported : { ...reported, ...missing, estimated: true };
}

/** With the pictures of an answer, for a model that has a price for each: few upstreams count them (known failure I8). */
export function withPictures(usage: Usage, whole: Whole): Usage {
  if (usage.images !== undefined) return usage;
  const images = whole.items.filter(({ item }) => item.kind === 'media' && item.media.type === 'image').length;
  return images === 0 ? usage : { ...usage, images };
}

/** Usage of an answer that reported none: what was asked and what was said, counted and flagged. */
export async function countedUsage(request: SentRequest, whole: Whole): Promise<Usage> {
  const texts: string[] = [];
  const reasoning: string[] = [];
  let media = 0;
  const collect = (text: string | undefined): void => {
    if (text !== undefined) texts.push(text);
  };
  for (const { item } of whole.items) {
    if (item.kind === 'reasoning') reasoning.push(item.raw ?? (item.summary ?? []).join('\n'));
    else countItem(item, collect, () => (media += IMAGE_TOKENS));
  }
  const inputs: string[] = [];
  let inputMedia = 0;
  for (const item of request.items) {
    countItem(
      item,
      (text) => inputs.push(text ?? ''),
      () => (inputMedia += IMAGE_TOKENS),
    );
  }
  for (const tool of request.tools) inputs.push(toolText(tool));
  const thought = await countTokens(reasoning.join('\n'));
  return {
    input: (await countTokens(inputs.join('\n'))) + inputMedia,
    output: (await countTokens(texts.join(''))) + thought + media,
    ...(thought > 0 ? { reasoning: thought } : {}),
    estimated: true,
  };
}
