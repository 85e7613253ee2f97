/**
 * The literal bytes of a chat-completions answer, as OpenAI writes them; reasoning as DeepSeek (raw) or OpenRouter (details) do.
 */
import type { Turn } from './dialect.ts';
import { DONE, dataFrame, type Frame } from './frame.ts';
import { isObject, type JsonObject, type JsonValue, objectOf } from './json.ts';
import {
  finishOf,
  fragmentsOf,
  type Reply,
  type TokenLogprob,
  type ToolPiece,
  type UsageFigures,
  usageOf,
  wholeOf,
  wordsOf,
} from './reply.ts';

export function chatWhole(reply: Reply, turn: Turn): string {
  const message: Record<string, JsonValue> = { role: 'assistant', content: null };
  const details: JsonObject[] = [];
  const calls: JsonObject[] = [];
  const annotations: JsonValue[] = [];
  const images: JsonObject[] = [];
  let refusal: string | null = null;
  let logprobs: JsonValue = null;
  for (const piece of reply.pieces) {
    switch (piece.type) {
      case 'text':
        annotations.push(...(piece.citations ?? []).map((citation) => annotation(citation)));
        message.content = `${typeof message.content === 'string' ? message.content : ''}${wholeOf(piece.text)}`;
        if (piece.logprobs !== undefined) logprobs = { content: piece.logprobs.map(logprobEntry), refusal: null };
        break;
      case 'refusal':
        refusal = `${refusal ?? ''}${wholeOf(piece.text)}`;
        break;
      case 'reasoning': {
        if (isPlain(piece)) message.reasoning_content = wholeOf(piece.raw);
        else details.push(...reasoningDetails(piece, turn));
        break;
      }
      case 'tool':
        calls.push(callEntry(piece, turn));
        break;
      case 'image':
        images.push(imageEntry(piece.data, piece.mimeType));
        break;
      case 'native':
        Object.assign(message, piece.value);
        break;
    }
  }
  if (details.length > 0) {
    message.reasoning = details.map((entry) => readable(entry)).join('') || null;
    message.reasoning_details = details;
  }
  if (calls.length > 0) message.tool_calls = calls;
  if (images.length > 0) message.images = images;
  message.refusal = refusal;
  message.annotations = annotations;
  const usage = usageOf(reply, JSON.stringify(turn.body.messages ?? ''));
  return JSON.stringify(
    {
      id: reply.id ?? turn.mint('chatcmpl-'),
      object: 'chat.completion',
      created: turn.createdS,
      model: reply.model ?? turn.model,
      choices: [{ index: 0, message, logprobs, finish_reason: finishOf(reply) }],
      ...(usage === null ? {} : { usage: chatUsage(usage) }),
      service_tier: 'default',
      system_fingerprint: FINGERPRINT,
    },
    null,
    2,
  );
}

const FINGERPRINT = 'fp_6fc10e10eb';

export function chatStream(reply: Reply, turn: Turn): Frame[] {
  const asked = objectOf(turn.body.stream_options).include_usage === true;
  const usage = asked ? usageOf(reply, JSON.stringify(turn.body.messages ?? '')) : null;
  // Usage has a chunk of its own, and is null in all others.
  const noUsage = usage === null ? '' : ',"usage":null';
  const head =
    `{"id":${quote(reply.id ?? turn.mint('chatcmpl-'))},"object":"chat.completion.chunk","created":${turn.createdS},` +
    `"model":${quote(reply.model ?? turn.model)},"service_tier":"default","system_fingerprint":"${FINGERPRINT}","choices":[`;
  const frames: Frame[] = [];
  const say = (delta: JsonValue, logprobs: JsonValue = null) =>
    frames.push(
      dataFrame(
        frames.length > 0 ? 'content' : 'start',
        `${head}{"index":0,"delta":${JSON.stringify(delta)},"logprobs":${JSON.stringify(logprobs)},"finish_reason":null}]${noUsage}}`,
      ),
    );
  writeDeltas(reply, turn, say);
  const finish = `${head}{"index":0,"delta":{},"logprobs":null,"finish_reason":${quote(finishOf(reply))}}]${noUsage}}`;
  frames.push(dataFrame('terminal', finish));
  if (usage !== null) frames.push(dataFrame('usage', `${head}],"usage":${JSON.stringify(chatUsage(usage))}}`));
  frames.push(DONE);
  return frames;
}

type Say = (delta: JsonValue, logprobs?: JsonValue) => void;

function writeDeltas(reply: Reply, turn: Turn, say: Say): void {
  const calls = reply.pieces.filter((piece) => piece.type === 'tool');
  const first = reply.pieces[0];
  if (first?.type === 'tool' && calls.length === 1) {
    // A single call that comes first begins with the role.
    say({ role: 'assistant', content: null, tool_calls: [callStart(first, 0, turn)], refusal: null });
    writeArguments(first, 0, say);
    return;
  }
  say({ role: 'assistant', ...opening(first) });
  const hasReasoning = reply.pieces.some((piece) => piece.type === 'reasoning' && isPlain(piece));
  for (const piece of reply.pieces) writePiece(piece, hasReasoning, turn, say);
  writeCalls(calls, reply.interleave === true, turn, say);
}

/** What stands beside the role in the first chunk. */
function opening(first: Reply['pieces'][number] | undefined): JsonObject {
  if (first?.type === 'tool') return { content: null };
  if (first?.type === 'refusal') return { content: null, refusal: '' };
  if (first?.type === 'reasoning' && isPlain(first)) return { content: null, reasoning_content: '' };
  return { content: '', refusal: null };
}

/** Calls come at the end, together. */
function writePiece(piece: Reply['pieces'][number], hasReasoning: boolean, turn: Turn, say: Say): void {
  switch (piece.type) {
    case 'text':
      writeText(piece.text, piece.logprobs, hasReasoning, say);
      if (piece.citations !== undefined) say({ annotations: piece.citations.map((citation) => annotation(citation)) });
      break;
    case 'refusal':
      for (const word of wordsOf(piece.text)) say({ refusal: word });
      break;
    case 'reasoning':
      if (isPlain(piece)) for (const word of wordsOf(piece.raw)) say({ content: null, reasoning_content: word });
      else for (const entry of detailDeltas(piece, turn)) say(entry);
      break;
    case 'image':
      say({ content: '', images: [imageEntry(piece.data, piece.mimeType)] });
      break;
    case 'native':
      say(piece.value);
      break;
    case 'tool':
      break;
  }
}

function writeText(
  text: Parameters<typeof wordsOf>[0],
  logprobs: readonly TokenLogprob[] | undefined,
  afterReasoning: boolean,
  say: Say,
): void {
  const words = wordsOf(text);
  const paired = logprobs?.length === words.length;
  words.forEach((word, index) => {
    const entries = logprobs === undefined ? undefined : paired ? logprobs.slice(index, index + 1) : index === 0 ? logprobs : [];
    const delta = afterReasoning ? { content: word, reasoning_content: null } : { content: word };
    say(delta, entries === undefined ? null : { content: entries.map(logprobEntry), refusal: null });
  });
}

function writeCalls(calls: readonly ToolPiece[], interleave: boolean, turn: Turn, say: Say): void {
  if (!interleave) {
    calls.forEach((call, index) => {
      say({ tool_calls: [callStart(call, index, turn)] });
      writeArguments(call, index, say);
    });
    return;
  }
  calls.forEach((call, index) => {
    say({ tool_calls: [callStart(call, index, turn)] });
  });
  const parts = calls.map((call) => fragmentsOf(call.arguments));
  for (let round = 0; round < Math.max(0, ...parts.map((list) => list.length)); round += 1) {
    calls.forEach((call, index) => {
      const part = parts[index]?.[round];
      if (part !== undefined) say({ tool_calls: [callDelta(call, index, part)] });
    });
  }
}

function writeArguments(call: ToolPiece, index: number, say: Say): void {
  for (const part of fragmentsOf(call.arguments)) say({ tool_calls: [callDelta(call, index, part)] });
}

function callStart(call: ToolPiece, index: number, turn: Turn): JsonObject {
  const id = callId(call, turn);
  const inner =
    call.custom === true ? { custom: { name: call.name, input: '' } } : { function: { name: call.name, arguments: '' } };
  return { index, ...(id === null ? {} : { id }), type: call.custom === true ? 'custom' : 'function', ...inner };
}

function callDelta(call: ToolPiece, index: number, part: string): JsonObject {
  return call.custom === true ? { index, custom: { input: part } } : { index, function: { arguments: part } };
}

function callEntry(call: ToolPiece, turn: Turn): JsonObject {
  const id = callId(call, turn);
  const text = wholeOf(call.arguments);
  return {
    ...(id === null ? {} : { id }),
    ...(call.custom === true
      ? { type: 'custom', custom: { name: call.name, input: text } }
      : { type: 'function', function: { name: call.name, arguments: text } }),
  };
}

function callId(call: ToolPiece, turn: Turn): string | null {
  return call.id === undefined ? turn.mint('call_') : call.id;
}

type Reasoning = Extract<Reply['pieces'][number], { type: 'reasoning' }>;

/** Raw text alone is DeepSeek's `reasoning_content`; anything more needs a router's `reasoning_details`. */
function isPlain(piece: Reasoning): boolean {
  return piece.summary === undefined && piece.opaque === undefined;
}

function detailDeltas(piece: Reasoning, turn: Turn): JsonObject[] {
  const deltas: JsonObject[] = [];
  for (const entry of reasoningDetails(piece, turn)) {
    const field = entry.type === 'reasoning.summary' ? 'summary' : 'text';
    const text = entry[field];
    if (typeof text !== 'string') {
      deltas.push({ role: 'assistant', content: '', reasoning: null, reasoning_details: [entry] });
      continue;
    }
    const { signature, ...unsigned } = entry;
    for (const word of wordsOf(text)) {
      deltas.push({ role: 'assistant', content: '', reasoning: word, reasoning_details: [{ ...unsigned, [field]: word }] });
    }
    if (signature !== undefined) {
      const { [field]: _, ...rest } = unsigned;
      deltas.push({ role: 'assistant', content: '', reasoning: null, reasoning_details: [{ ...rest, signature }] });
    }
  }
  return deltas;
}

function reasoningDetails(piece: Reasoning, turn: Turn): JsonObject[] {
  const raw = wholeOf(piece.raw);
  const summary = piece.summary?.join('\n\n');
  const details: JsonObject[] = [];
  if (raw !== '') {
    const signature = piece.opaque === true ? turn.seals.issue('thinking', raw, turn.mint('')) : piece.opaque;
    const signed = signature === undefined || summary !== undefined ? {} : { signature };
    details.push({ type: 'reasoning.text', text: raw, ...signed, format: 'anthropic-claude-v1', index: 0 });
  }
  if (summary !== undefined) details.push({ type: 'reasoning.summary', summary, format: 'openai-responses-v1', index: 0 });
  if (piece.opaque !== undefined && (raw === '' || summary !== undefined)) {
    const data = piece.opaque === true ? turn.seals.issue('reasoning', '', turn.mint('')) : piece.opaque;
    details.push({ type: 'reasoning.encrypted', data, id: turn.mint('rs_'), format: 'openai-responses-v1', index: 0 });
  }
  return details;
}

function readable(detail: JsonObject): string {
  const text = detail.text ?? detail.summary;
  return typeof text === 'string' ? text : '';
}

function annotation({ url, title, start, end }: { url: string; title: string; start: number; end: number }): JsonObject {
  return { type: 'url_citation', url_citation: { end_index: end, start_index: start, title, url } };
}

function imageEntry(data: string, mimeType = 'image/png'): JsonObject {
  return { type: 'image_url', image_url: { url: `data:${mimeType};base64,${data}` } };
}

export function logprobEntry({ token, logprob, top }: TokenLogprob): JsonObject {
  return { token, logprob, bytes: bytesOf(token), top_logprobs: top.map((entry) => ({ ...entry, bytes: bytesOf(entry.token) })) };
}

function bytesOf(token: string): readonly number[] {
  return [...Buffer.from(token)];
}

function chatUsage(usage: UsageFigures): JsonObject {
  const { input, output, cached = 0, reasoning = 0, extra } = usage;
  const merged = isObject(extra) ? extra : {};
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: {
      cached_tokens: cached,
      audio_tokens: 0,
      ...(usage.cacheWrite === undefined ? {} : { cache_write_tokens: usage.cacheWrite }),
    },
    completion_tokens_details: {
      reasoning_tokens: reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
    ...merged,
  };
}

const quote = (text: string) => JSON.stringify(text);
