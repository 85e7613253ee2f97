/** One output item of a responses answer: its start form, its final form and the events between, in OpenAI's order. */
import { logprobEntry } from './chat-wire.ts';
import type { Turn } from './dialect.ts';
import type { JsonObject, JsonValue } from './json.ts';
import { fragmentsOf, type Piece, type Reply, wholeOf, wordsOf } from './reply.ts';

/** An event without `sequence_number`; `output_index` is added by the stream. */
export interface ItemEvent {
  readonly type: string;
  readonly members: JsonObject;
}

export interface OutputItem {
  readonly added: JsonObject;
  readonly events: readonly ItemEvent[];
  readonly done: JsonObject;
  /** As the terminal event repeats it: opaque values differ from `done`, as they do at OpenAI. */
  readonly final: JsonObject;
}

export function outputItems(reply: Reply, turn: Turn, status: 'completed' | 'incomplete'): OutputItem[] {
  const last = reply.pieces.length - 1;
  return reply.pieces.map((piece, index) => outputItem(piece, turn, index === last ? status : 'completed'));
}

function outputItem(piece: Piece, turn: Turn, status: string): OutputItem {
  switch (piece.type) {
    case 'text':
      return textItem(piece, turn, status);
    case 'refusal':
      return refusalItem(piece, turn, status);
    case 'reasoning':
      return reasoningItem(piece, turn);
    case 'tool':
      return callItem(piece, turn, status);
    case 'image':
      return imageItem(piece, turn);
    case 'native':
      return same(piece.value, [], piece.value);
  }
}

function same(added: JsonObject, events: readonly ItemEvent[], done: JsonObject): OutputItem {
  return { added, events, done, final: done };
}

function textItem(piece: Extract<Piece, { type: 'text' }>, turn: Turn, status: string): OutputItem {
  const id = turn.mint('msg_');
  const at = { item_id: id, content_index: 0 };
  const words = wordsOf(piece.text);
  const entries = (piece.logprobs ?? []).map(logprobEntry);
  const paired = entries.length === words.length;
  const annotations = (piece.citations ?? []).map(({ url, title, start, end }) => ({
    type: 'url_citation',
    end_index: end,
    start_index: start,
    title,
    url,
  }));
  const part = (text: string, found: readonly JsonValue[], logprobs: readonly JsonValue[]) => ({
    type: 'output_text',
    annotations: found,
    logprobs,
    text,
  });
  const text = wholeOf(piece.text);
  const events: ItemEvent[] = [{ type: 'response.content_part.added', members: { ...at, part: part('', [], []) } }];
  words.forEach((delta, index) => {
    const logprobs = paired ? entries.slice(index, index + 1) : index === 0 ? entries : [];
    events.push({ type: 'response.output_text.delta', members: { ...at, delta, logprobs, ...obfuscation(turn, delta) } });
  });
  annotations.forEach((annotation, annotation_index) => {
    events.push({ type: 'response.output_text.annotation.added', members: { ...at, annotation, annotation_index } });
  });
  events.push({ type: 'response.output_text.done', members: { ...at, text, logprobs: entries } });
  events.push({ type: 'response.content_part.done', members: { ...at, part: part(text, annotations, entries) } });
  return same(messageItem(id, 'in_progress', []), events, messageItem(id, status, [part(text, annotations, entries)]));
}

function messageItem(id: string, status: string, content: readonly JsonObject[]): JsonObject {
  return { id, type: 'message', status, content, role: 'assistant' };
}

/** Random padding that hides lengths, unless the caller switched it off. */
function obfuscation(turn: Turn, delta: string): JsonObject {
  const options = turn.body.stream_options;
  if (
    typeof options === 'object' &&
    options !== null &&
    'include_obfuscation' in options &&
    options.include_obfuscation === false
  )
    return {};
  return { obfuscation: turn.mint('').slice(0, Math.max(1, 16 - (delta.length % 16))) };
}

function refusalItem(piece: Extract<Piece, { type: 'refusal' }>, turn: Turn, status: string): OutputItem {
  const id = turn.mint('msg_');
  const at = { item_id: id, content_index: 0 };
  const refusal = wholeOf(piece.text);
  const part = { type: 'refusal', refusal };
  return same(
    messageItem(id, 'in_progress', []),
    [
      { type: 'response.content_part.added', members: { ...at, part: { type: 'refusal', refusal: '' } } },
      ...wordsOf(piece.text).map((delta) => ({ type: 'response.refusal.delta', members: { ...at, delta } })),
      { type: 'response.refusal.done', members: { ...at, refusal } },
      { type: 'response.content_part.done', members: { ...at, part } },
    ],
    messageItem(id, status, [part]),
  );
}

function reasoningItem(piece: Extract<Piece, { type: 'reasoning' }>, turn: Turn): OutputItem {
  const id = turn.mint('rs_');
  const events: ItemEvent[] = [];
  const raw = wholeOf(piece.raw);
  if (piece.raw !== undefined) {
    const at = { item_id: id, content_index: 0 };
    const part = (text: string) => ({ type: 'reasoning_text', text });
    events.push({ type: 'response.content_part.added', members: { ...at, part: part('') } });
    for (const delta of wordsOf(piece.raw)) events.push({ type: 'response.reasoning_text.delta', members: { ...at, delta } });
    events.push({ type: 'response.reasoning_text.done', members: { ...at, text: raw } });
    events.push({ type: 'response.content_part.done', members: { ...at, part: part(raw) } });
  }
  const summary = (piece.summary ?? []).map((text) => ({ type: 'summary_text', text }));
  summary.forEach(({ text }, summary_index) => {
    const at = { item_id: id, summary_index };
    events.push({ type: 'response.reasoning_summary_part.added', members: { ...at, part: { type: 'summary_text', text: '' } } });
    for (const delta of wordsOf(text)) {
      events.push({ type: 'response.reasoning_summary_text.delta', members: { ...at, delta, ...obfuscation(turn, delta) } });
    }
    events.push({ type: 'response.reasoning_summary_text.done', members: { ...at, text } });
    events.push({ type: 'response.reasoning_summary_part.done', members: { ...at, part: { type: 'summary_text', text } } });
  });
  const content = piece.raw === undefined ? [] : [{ type: 'reasoning_text', text: raw }];
  const item = (value: string | undefined, said: boolean): JsonObject => ({
    id,
    type: 'reasoning',
    ...(piece.raw === undefined ? {} : { content: said ? content : [] }),
    ...(value === undefined ? {} : { encrypted_content: value }),
    summary: said ? summary : [],
  });
  if (piece.opaque === undefined) return same(item(undefined, false), events, item(undefined, true));
  if (piece.opaque !== true) return same(item(piece.opaque, false), events, item(piece.opaque, true));
  const issue = (kind: 'draft' | 'reasoning', tag: string) => turn.seals.issue(kind, '', `${tag}${id}`);
  return {
    added: item(issue('draft', 'added'), false),
    events,
    done: item(issue('reasoning', 'done'), true),
    final: item(issue('reasoning', 'final'), true),
  };
}

function callItem(piece: Extract<Piece, { type: 'tool' }>, turn: Turn, status: string): OutputItem {
  const text = wholeOf(piece.arguments);
  const custom = piece.custom === true;
  const id = turn.mint(custom ? 'ctc_' : 'fc_');
  const callId = piece.id === undefined ? turn.mint('call_') : piece.id;
  const field = custom ? 'input' : 'arguments';
  const stem = custom ? 'response.custom_tool_call_input' : 'response.function_call_arguments';
  const item = (state: string, value: string): JsonObject => ({
    id,
    type: custom ? 'custom_tool_call' : 'function_call',
    status: state,
    [field]: value,
    ...(callId === null ? {} : { call_id: callId }),
    name: piece.name,
    ...(piece.namespace === undefined ? {} : { namespace: piece.namespace }),
  });
  const events = fragmentsOf(piece.arguments).map((delta) => ({
    type: `${stem}.delta`,
    members: { delta, item_id: id, ...obfuscation(turn, delta) },
  }));
  return same(
    item('in_progress', ''),
    [...events, { type: `${stem}.done`, members: { [field]: text, item_id: id } }],
    item(status, text),
  );
}

function imageItem(piece: Extract<Piece, { type: 'image' }>, turn: Turn): OutputItem {
  const id = turn.mint('ig_');
  const at = { item_id: id };
  const known = {
    background: 'opaque',
    output_format: 'png',
    quality: 'medium',
    size: piece.size ?? '1024x1024',
  };
  const done = {
    id,
    type: 'image_generation_call',
    status: 'completed',
    action: 'generate',
    ...known,
    result: piece.data,
    revised_prompt: null,
  };
  return same(
    { id, type: 'image_generation_call', status: 'in_progress' },
    [
      { type: 'response.image_generation_call.in_progress', members: at },
      { type: 'response.image_generation_call.generating', members: at },
      { type: 'response.image_generation_call.completed', members: at },
    ],
    done,
  );
}
