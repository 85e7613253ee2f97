/**
 * Writes canonical items as responses input, for a client of another dialect. Texts and media of one turn and role share a
 * message; calls, results and reasoning are items of their own. Only reasoning with an opaque value gets an id, since the id
 * belongs to the value. The dispatcher has checked private file ids before.
 */
import { callArguments } from '../../tools/arguments.ts';
import { withAnsweredCalls } from '../../tools/call-pairs.ts';
import { notConvertible } from '../../canonical/error.ts';
import type {
  Item,
  Media,
  MediaItem,
  Part,
  ReasoningItem,
  RefusalItem,
  Role,
  TextItem,
  ToolResultItem,
} from '../../canonical/item.ts';
import type { JsonObject } from '../../canonical/json.ts';
import { isEnvelope, type Opaque } from '../../canonical/opaque.ts';
import type { Target } from '../../codec.ts';
import { refuseForeignItem } from '../../requests/foreign-content.ts';
import { endsStep, type Steps } from '../../steps.ts';
import { promptBreakpointOf } from '../../requests/cache-breakpoints.ts';
import { mayReplay } from '../../requests/opaque-replay.ts';
import { dataUri, filenameOf, titledText } from '../../media.ts';
import { fittingId } from '../../requests/short-id.ts';
import type { ToolNames } from '../../tools/names.ts';
import { readForm } from '../opaque.ts';
import { PARAGRAPH } from '../answer/decode-items.ts';
import type { Losses } from '../../requests/losses.ts';

export interface InputWriter {
  readonly target: Target;
  readonly names: ToolNames;
  /** Wire names of custom tools that are sent as functions with a schema. */
  readonly schemaTools: ReadonlySet<string>;
  readonly losses: Losses;
  /** Ids of the calls that were written as function calls, so that their results are written alike. */
  readonly functionCalls: Set<string>;
}

interface Message {
  readonly role: Role;
  readonly turn: number | undefined;
  readonly phase: string | undefined;
  readonly content: JsonObject[];
}

const ERROR_PREFIX = 'Error: ';
const IMAGE_LABEL = 'Image that the assistant made:';

export function* writeInput(items: readonly Item[], writer: InputWriter): Steps<JsonObject[]> {
  const input: JsonObject[] = [];
  /** Reasoning that nothing needs to follow. */
  const alone = new Set<JsonObject>();
  let open: Message | undefined;
  const addPart = (item: TextItem | RefusalItem | MediaItem, role: Role, part: JsonObject) => {
    const phase = item.kind === 'text' ? phaseOf(item) : open?.phase;
    if (open === undefined || open.role !== role || open.turn !== item.turn || open.phase !== phase) {
      open = { role, turn: item.turn, phase, content: [] };
      const facts = phase === undefined ? {} : { phase };
      input.push({ type: 'message', role, content: open.content, ...facts });
    }
    open.content.push(part);
  };
  for (const [index, item] of (yield* withAnsweredCalls(items, (feature) => writer.losses.note(feature))).entries()) {
    if (endsStep(index)) yield;
    noteLosses(item, writer);
    switch (item.kind) {
      case 'text':
        // An empty message would separate calls from their outputs (known failure R10).
        if (item.text !== '') addPart(item, item.role, marked(textPart(item.text, item.role), item));
        continue;
      case 'refusal':
        addPart(item, 'assistant', { type: 'refusal', refusal: item.text });
        continue;
      case 'media':
        if (item.role === 'assistant') {
          input.push(writeAssistantImage(item));
          open = undefined;
        } else {
          addPart(item, item.role, marked(mediaPart(item.media), item));
        }
        continue;
    }
    const written = writeItem(item, writer);
    if (written === undefined) continue;
    open = undefined;
    input.push(written);
    if (item.kind === 'reasoning' && item.opaque !== undefined && standsAlone(item.opaque)) alone.add(written);
  }
  const asked = dropDangling(input, alone);
  // The vendor refuses an input of nothing, and takes a message of the user that is empty.
  return asked.length === 0 ? [{ type: 'message', role: 'user', content: '' }] : asked;
}

function phaseOf(item: TextItem): string | undefined {
  return item.phase === 'commentary' || item.phase === 'final_answer' ? item.phase : undefined;
}

function textPart(text: string, role: Role): JsonObject {
  return role === 'assistant' ? { type: 'output_text', text, annotations: [] } : { type: 'input_text', text };
}

function writeItem(item: Exclude<Item, TextItem | RefusalItem | MediaItem>, writer: InputWriter): JsonObject | undefined {
  switch (item.kind) {
    case 'toolCall': {
      const name = writer.names.toWire(item.tool);
      if (item.toolType === 'custom' && !writer.schemaTools.has(name)) {
        return { type: 'custom_tool_call', call_id: wireCallId(item.callId), name, input: item.input };
      }
      writer.functionCalls.add(item.callId);
      return {
        type: 'function_call',
        call_id: wireCallId(item.callId),
        name,
        arguments: callArguments(item.input),
      };
    }
    case 'toolResult':
      return writeResult(item, writer);
    case 'reasoning':
      return writeReasoning(item, writer);
    case 'native':
      refuseForeignItem(item);
      return undefined;
  }
}

function writeResult(item: ToolResultItem, writer: InputWriter): JsonObject {
  const isCustom = item.toolType === 'custom' && !writer.functionCalls.has(item.callId);
  const type = isCustom ? 'custom_tool_call_output' : 'function_call_output';
  return { type, call_id: wireCallId(item.callId), output: writeOutput(item, writer) };
}

/** The longest call id that the vendor takes (`string_above_max_length`), though it makes longer ones itself. */
const MAX_CALL_ID = 64;

export function wireCallId(id: string): string {
  return fittingId(id, MAX_CALL_ID);
}

function writeOutput(item: ToolResultItem, writer: InputWriter): string | JsonObject[] {
  const content = item.content.filter((part) => part.kind !== 'text' || part.text !== '');
  const texts = content.flatMap((part) => (part.kind === 'text' ? [part.text] : []));
  const prefix = item.isError ? ERROR_PREFIX : '';
  if (content.length === 1 && texts.length === 1 && item.breakpoint === undefined) return prefix + (texts[0] ?? '');
  const parts = content.flatMap((part) => writePart(part, item, writer));
  if (parts.length === 0) return prefix.trimEnd();
  const prefixedParts = prefix === '' ? parts : prefixed(parts, prefix);
  const last = prefixedParts.pop();
  return last === undefined ? prefixedParts : [...prefixedParts, marked(last, item)];
}

function prefixed(parts: readonly JsonObject[], prefix: string): JsonObject[] {
  const [first, ...rest] = parts;
  const beginsWithText = first?.['type'] === 'input_text';
  return beginsWithText
    ? [{ type: 'input_text', text: `${prefix}${first['text']}` }, ...rest]
    : [{ type: 'input_text', text: prefix.trimEnd() }, ...parts];
}

function marked(part: JsonObject, { breakpoint }: Item): JsonObject {
  return breakpoint === undefined ? part : { ...part, prompt_cache_breakpoint: promptBreakpointOf(breakpoint) };
}

/** Parts of the input have a place for a cache breakpoint, those of the model have none. */
export function holdsBreakpoint(item: Item): boolean {
  if (item.kind === 'text') return item.role !== 'assistant' && item.text !== '';
  return item.kind === 'toolResult' || (item.kind === 'media' && item.role !== 'assistant');
}

function writePart(part: Part, item: ToolResultItem, writer: InputWriter): JsonObject[] {
  if (part.kind === 'text') return [{ type: 'input_text', text: part.text }];
  if (part.kind === 'media') return [mediaPart({ ...part.media, at: part.media.at ?? item.at ?? '' })];
  writer.losses.note('native item');
  return [];
}

/**
 * Raw text stays raw. A summary is sent only with its opaque value, under that value's id. An item of another owner is left out.
 */
function writeReasoning(item: ReasoningItem, writer: InputWriter): JsonObject | undefined {
  const { opaque } = item;
  const { target } = writer;
  const isOurs = opaque !== undefined && mayReplay(opaque, target, 'responses');
  if (opaque !== undefined && !isOurs) {
    // The whole item, not only its value (semantics 9.2.3).
    writer.losses.note('reasoning: opaque of another owner');
    return undefined;
  }
  const form = readForm(opaque?.form);
  // Clients of some chat vendors send an empty text beside calls; it counts as none.
  const raw = item.raw === undefined || item.raw === '' ? form.raw : item.raw;
  // Clients with one readable member got the raw text in it, so what they send back is not a summary (spec rule 10).
  const summary = item.summary?.join(PARAGRAPH) === form.raw ? [] : (item.summary ?? []);
  const isRaw = raw !== undefined && !target.without.has('raw');
  if (raw !== undefined && !isRaw) writer.losses.add('reasoning: raw text in history');
  const content = isRaw ? { content: [{ type: 'reasoning_text', text: raw }] } : {};
  if (opaque === undefined) return isRaw ? { type: 'reasoning', summary: [], ...content } : undefined;
  return {
    type: 'reasoning',
    ...(opaque.itemId === undefined ? {} : { id: opaque.itemId }),
    summary: summary.map((text) => ({ type: 'summary_text', text })),
    ...content,
    [form.member]: opaque.value,
    ...(form.format === undefined ? {} : { format: form.format }),
  };
}

/**
 * Drops reasoning that no output of the model follows, since OpenAI refuses it (known failure R23). That of another vendor stays,
 * and an envelope of another gateway, since it may sign what stands before it.
 */
function dropDangling(input: readonly JsonObject[], alone: ReadonlySet<JsonObject>): JsonObject[] {
  const kept: JsonObject[] = [];
  let isFollowed = false;
  for (const item of input.toReversed()) {
    if (item['type'] !== 'reasoning') isFollowed = isModelOutput(item);
    else if (!isFollowed && !alone.has(item)) continue;
    kept.push(item);
  }
  return kept.reverse();
}

/** True for encrypted reasoning of vendors that let it stand behind its message, where routers put it: the rule is OpenAI's. */
export function standsAlone({ value, form }: Pick<Opaque, 'value' | 'form'>): boolean {
  const { member, format } = readForm(form);
  return isEnvelope(value) || member === 'signature' || (format !== undefined && !/^(openai|azure)/.test(format));
}

function isModelOutput(item: JsonObject): boolean {
  return item['role'] === 'assistant' || item['type'] === 'function_call' || item['type'] === 'custom_tool_call';
}

/** An image of the assistant becomes a labelled image of the user, since assistant messages take none. */
function writeAssistantImage(item: MediaItem): JsonObject {
  if (item.media.type !== 'image') throw cannotTake(item.media, 'in an assistant turn');
  const content = [{ type: 'input_text', text: IMAGE_LABEL }, imagePart(item.media)];
  return { type: 'message', role: 'user', content };
}

function mediaPart(media: Media): JsonObject {
  switch (media.type) {
    case 'image':
      return imagePart(media);
    case 'file':
      return filePart(media);
    case 'audio':
    case 'video':
      throw cannotTake(media, 'at all');
  }
}

function imagePart(media: Media): JsonObject {
  const detail = media.detail === undefined ? {} : { detail: media.detail };
  const { source } = media;
  switch (source.from) {
    case 'inline':
      return { type: 'input_image', image_url: dataUri(source), ...detail };
    case 'url':
      return { type: 'input_image', image_url: source.url, ...detail };
    case 'reference':
      return { type: 'input_image', file_id: source.id, ...detail };
    case 'text':
      throw cannotTake(media, 'as text');
  }
}

function filePart(media: Media): JsonObject {
  const { source } = media;
  switch (source.from) {
    case 'inline':
      return { type: 'input_file', filename: media.filename ?? filenameOf(source.mime), file_data: dataUri(source) };
    case 'url':
      return { type: 'input_file', file_url: source.url };
    case 'reference':
      return { type: 'input_file', file_id: source.id };
    case 'text':
      return { type: 'input_text', text: titledText(source.text, media.filename) };
  }
}

function cannotTake(media: Media, how: string) {
  return notConvertible(media.at, `The selected upstream's protocol cannot take ${media.type} content ${how}.`);
}

function noteLosses(item: Item, { losses }: InputWriter): void {
  if (item.kind === 'native') losses.note('native item', item.at);
  if (item.kind === 'reasoning' && item.opaque === undefined && item.summary !== undefined)
    losses.note('reasoning: summary in history', item.at);
  // Only another protocol signs texts and images.
  if ((item.kind === 'text' || item.kind === 'media') && item.opaque !== undefined)
    losses.note('reasoning: opaque of another owner', item.at);
}
