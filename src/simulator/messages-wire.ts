/** The literal bytes of a messages answer, as Anthropic writes them: block order, pings, padded data lines. */
import type { Turn } from './dialect.ts';
import { type Frame, type FramePart, namedFrame } from './frame.ts';
import { type JsonObject, objectOf, parseJson } from './json.ts';
import { finishOf, fragmentsOf, type Piece, type Reply, type UsageFigures, usageOf, wholeOf, wordsOf } from './reply.ts';

/** A content block: how it starts, what is added to it, and the whole. */
interface Block {
  readonly start: JsonObject;
  readonly deltas: readonly JsonObject[];
  /** Absent where the arguments are no JSON: such a call can only be streamed. */
  readonly whole: JsonObject | undefined;
}

const STOP_REASONS = new Map([
  ['stop', 'end_turn'],
  ['length', 'max_tokens'],
  ['tool_calls', 'tool_use'],
  ['content_filter', 'refusal'],
]);

function stopReason(reply: Reply): string {
  const finish = finishOf(reply);
  if (finish === 'stop' && reply.stopSequence !== undefined) return 'stop_sequence';
  return STOP_REASONS.get(finish) ?? finish;
}

export function messagesWhole(reply: Reply, turn: Turn): string {
  const usage = usageOf(reply, promptText(turn));
  return JSON.stringify({
    model: reply.model ?? turn.model,
    id: reply.id ?? turn.mint('msg_'),
    type: 'message',
    role: 'assistant',
    content: reply.pieces
      .flatMap((piece) => blocksOf(piece, turn))
      .map(({ whole }) => {
        if (whole === undefined) throw new Error('arguments that are no JSON can only be streamed');
        return whole;
      }),
    stop_reason: stopReason(reply),
    stop_sequence: reply.stopSequence ?? null,
    stop_details: null,
    ...(usage === null ? {} : { usage: fullUsage(usage, usage.output) }),
  });
}

export function messagesStream(reply: Reply, turn: Turn): Frame[] {
  const usage = usageOf(reply, promptText(turn));
  const frames: Frame[] = [];
  const say = (part: FramePart, type: string, members: JsonObject) => {
    const json = JSON.stringify({ type, ...members });
    // The vendor pads with spaces before the last brace, so that lengths tell nothing.
    frames.push(namedFrame(part, type, `${json.slice(0, -1)}${' '.repeat((frames.length * 7) % 16)}}`));
  };
  say('start', 'message_start', {
    message: {
      model: reply.model ?? turn.model,
      id: reply.id ?? turn.mint('msg_'),
      type: 'message',
      role: 'assistant',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      stop_details: null,
      usage: fullUsage(usage ?? { input: 0, output: 0 }, 1),
    },
  });
  const blocks = reply.pieces.flatMap((piece) => blocksOf(piece, turn));
  blocks.forEach((block, index) => {
    say('content', 'content_block_start', { index, content_block: block.start });
    if (index === 0) frames.push(PING);
    for (const delta of block.deltas) say('content', 'content_block_delta', { index, delta });
    say('content', 'content_block_stop', { index });
  });
  say('terminal', 'message_delta', {
    delta: { stop_reason: stopReason(reply), stop_sequence: reply.stopSequence ?? null, stop_details: null },
    ...(usage === null ? {} : { usage: deltaUsage(usage) }),
  });
  say('terminal', 'message_stop', {});
  return frames;
}

const PING: Frame = { part: 'comment', text: 'event: ping\ndata: {"type": "ping"}\n\n' };

function promptText(turn: Turn): string {
  return `${JSON.stringify(turn.body.system ?? '')}${JSON.stringify(turn.body.messages ?? '')}`;
}

function blocksOf(piece: Piece, turn: Turn): Block[] {
  switch (piece.type) {
    case 'text':
      return [textBlock(piece)];
    case 'refusal':
      return [textBlock({ type: 'text', text: piece.text })];
    case 'reasoning':
      return [thinkingBlock(piece, turn)];
    case 'tool':
      return [callBlock(piece, turn)];
    case 'native':
      return [{ start: piece.value, deltas: [], whole: piece.value }];
    case 'image':
      throw new Error('a messages upstream sends no images: script a native block instead');
  }
}

function textBlock(piece: Extract<Piece, { type: 'text' }>): Block {
  const text = wholeOf(piece.text);
  const citations = (piece.citations ?? []).map(({ url, title, start, end }) => ({
    type: 'web_search_result_location',
    cited_text: text.slice(start, end),
    url,
    title,
    encrypted_index: Buffer.from(url).toString('base64'),
  }));
  return {
    start: citations.length > 0 ? { citations: [], type: 'text', text: '' } : { type: 'text', text: '' },
    deltas: [
      ...citations.map((citation) => ({ type: 'citations_delta', citation })),
      ...wordsOf(piece.text).map((word) => ({ type: 'text_delta', text: word })),
    ],
    whole: citations.length > 0 ? { citations, type: 'text', text } : { type: 'text', text },
  };
}

/** The text of a thinking block is what the caller may see: the summary, or the raw text of older models. */
function thinkingBlock(piece: Extract<Piece, { type: 'reasoning' }>, turn: Turn): Block {
  const hidden = objectOf(turn.body.thinking).display === 'omitted';
  const parts = hidden ? [] : piece.summary === undefined ? wordsOf(piece.raw) : wordsOf(piece.summary.join('\n\n'));
  const thinking = parts.join('');
  const signature =
    piece.opaque === true || piece.opaque === undefined ? turn.seals.issue('thinking', thinking, turn.mint('')) : piece.opaque;
  return {
    start: { type: 'thinking', thinking: '', signature: '' },
    deltas: [...parts.map((word) => ({ type: 'thinking_delta', thinking: word })), { type: 'signature_delta', signature }],
    whole: { type: 'thinking', thinking, signature },
  };
}

function callBlock(piece: Extract<Piece, { type: 'tool' }>, turn: Turn): Block {
  const head = { type: 'tool_use', ...(piece.id === null ? {} : { id: piece.id ?? turn.mint('toolu_') }), name: piece.name };
  const text = wholeOf(piece.arguments);
  // A custom tool has no free text here: its input is wrapped, as a schema of one string would have it.
  const input = piece.custom === true ? { input: text } : parseJson(text === '' ? '{}' : text);
  const sent = piece.custom === true ? fragmentsOf(JSON.stringify(input)) : fragmentsOf(piece.arguments);
  return {
    start: { ...head, input: {} },
    deltas: ['', ...sent].map((partial_json) => ({ type: 'input_json_delta', partial_json })),
    whole: input === undefined ? undefined : { ...head, input },
  };
}

/** `input` without the cached parts, which stand beside it. */
function inputSide(usage: UsageFigures): JsonObject {
  const { cached = 0, cacheWrite = 0, cacheWrite1h = 0 } = usage;
  return {
    input_tokens: usage.input - cached - cacheWrite - cacheWrite1h,
    cache_creation_input_tokens: cacheWrite + cacheWrite1h,
    cache_read_input_tokens: cached,
  };
}

function fullUsage(usage: UsageFigures, output: number): JsonObject {
  return {
    ...inputSide(usage),
    cache_creation: { ephemeral_5m_input_tokens: usage.cacheWrite ?? 0, ephemeral_1h_input_tokens: usage.cacheWrite1h ?? 0 },
    output_tokens: output,
    ...(usage.reasoning === undefined || output !== usage.output
      ? {}
      : { output_tokens_details: { thinking_tokens: usage.reasoning } }),
    service_tier: 'standard',
    inference_geo: 'not_available',
    ...(usage.extra ?? {}),
  };
}

function deltaUsage(usage: UsageFigures): JsonObject {
  return {
    ...inputSide(usage),
    output_tokens: usage.output,
    ...(usage.reasoning === undefined ? {} : { output_tokens_details: { thinking_tokens: usage.reasoning } }),
    ...(usage.extra ?? {}),
  };
}
