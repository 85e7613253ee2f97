/** What a text request needs of the Channel that serves it. */
import type { ChannelType } from '../../codecs/canonical/dialect.ts';
import { hasOpaque, type Item, type Media } from '../../codecs/canonical/item.ts';
import { isObject, type JsonValue } from '../../codecs/canonical/json.ts';
import { type CanonicalRequest, LOWER_CAPS, type Refusable } from '../../codecs/canonical/request.ts';
import type { CodecSet } from '../../codecs/codec-set.ts';
import { asksForCaching } from '../../codecs/requests/cache-breakpoints.ts';
import type { Channel, Model } from '../config/config.ts';
import type { Need } from '../dispatch/candidates.ts';

export function needOf(codecs: CodecSet, request: CanonicalRequest, accountClass: string): Need {
  const referenceAt = firstReference(request);
  const bound = boundTo(codecs, request);
  return {
    model: request.model,
    accountClass,
    types: codecs.textTypes,
    ...(referenceAt === undefined ? {} : { referenceAt }),
    ...(bound === undefined ? {} : { boundTo: bound }),
  };
}

/**
 * OpenAI's and Google's `flex` and Anthropic's `fast` have places and limits of their own, and are refused while the model goes
 * well for everybody else: what they meet has circuits of its own. Other tiers share the limits of the model.
 */
export function circuitOf({ model, serviceTier, json }: Pick<CanonicalRequest, 'model' | 'serviceTier' | 'json'>): string {
  if (serviceTier === 'flex') return `${model} flex`;
  return json['speed'] === 'fast' ? `${model} fast` : model;
}

/** State that lives at an upstream: only Channels of its dialect can read it. */
function boundTo(
  codecs: CodecSet,
  request: CanonicalRequest,
): { readonly types: ReadonlySet<ChannelType>; readonly at: string } | undefined {
  if (request.conversation !== undefined && request.conversation !== null) {
    return { types: codecs.typesOf('responses'), at: 'conversation' };
  }
  return request.boundTo === undefined ? undefined : { types: codecs.typesOf(request.boundTo.dialect), at: request.boundTo.at };
}

/** The path of the first file that the request names by an id of the vendor's. */
function firstReference({ items, tools }: CanonicalRequest): string | undefined {
  for (const item of items) {
    const found = referenceIn(item);
    if (found !== undefined) return found;
  }
  for (const tool of tools) if (tool.kind === 'native' && tool.referenceAt !== undefined) return tool.referenceAt;
  return undefined;
}

function referenceIn(item: Item): string | undefined {
  if (item.kind === 'native') return item.referenceAt;
  const found = mediaOf(item).find(({ source }) => source.from === 'reference');
  return found === undefined ? undefined : (found.at ?? item.at ?? '');
}

function mediaOf(item: Item): readonly Media[] {
  if (item.kind === 'media') return [item.media];
  if (item.kind !== 'toolResult') return [];
  return item.content.flatMap((part) => (part.kind === 'media' ? [part.media] : []));
}

/** What of a request these Channels may refuse that they can do without. */
export function refusablesIn(request: CanonicalRequest, channels: readonly Channel[]): ReadonlySet<Refusable> {
  const kinds = new Set<Refusable>();
  if (asksForCaching(request) || channels.some(({ codec }) => codec.cacheBreakpoints === 'auto')) kinds.add('breakpoints');
  if (request.maxOutputTokens === undefined && channels.some(({ type }) => type === 'messages'))
    for (const cap of LOWER_CAPS) kinds.add(`cap_${cap}`);
  // A messages client's own members go as they are.
  if (request.dialect !== 'messages' && request.temperature !== undefined && request.topP !== undefined)
    kinds.add('both_samplings');
  if (request.dialect === 'responses' && namesItems(request.json['input'])) kinds.add('ids');
  for (const item of request.items) {
    if (hasOpaque(item)) kinds.add('opaque');
    if (item.kind === 'reasoning' && (item.raw !== undefined || item.summary !== undefined)) kinds.add('raw');
  }
  return kinds;
}

function namesItems(input: JsonValue | undefined): boolean {
  return Array.isArray(input) && input.some((item: JsonValue) => isObject(item) && typeof item['id'] === 'string');
}

/** Whether the Channel compacts a conversation by asking its model for a summary. */
export function bySummary({ options }: Channel, model: Model): boolean {
  return (options.compaction ?? model.compaction) === 'summary';
}
