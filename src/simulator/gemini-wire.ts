/** The literal bytes of a generateContent answer, as Google writes them: CRLF frames, signatures on parts, cumulative usage. */
import type { Turn } from './dialect.ts';
import type { Frame, FramePart } from './frame.ts';
import { isArray, isObject, type JsonObject, type JsonValue, parseJson } from './json.ts';
import { finishOf, type Piece, type Reply, type TokenLogprob, type UsageFigures, usageOf, wholeOf, wordsOf } from './reply.ts';

const FINISH = new Map([
  ['stop', 'STOP'],
  ['tool_calls', 'STOP'],
  ['length', 'MAX_TOKENS'],
  ['content_filter', 'SAFETY'],
]);

export function geminiWhole(reply: Reply, turn: Turn): string {
  const parts = reply.pieces.flatMap((piece, index) => wholeParts(piece, isFirstCall(reply, index), turn));
  const candidate = { content: { parts, role: 'model' }, ...closing(reply), index: 0, ...extras(reply) };
  return `${JSON.stringify({ candidates: [candidate], ...tail(reply, turn, true, reply.id ?? turn.mint('')) }, null, 2)}\n`;
}

export function geminiStream(reply: Reply, turn: Turn): Frame[] {
  const frames: Frame[] = [];
  const id = reply.id ?? turn.mint('');
  const say = (part: FramePart, candidate: JsonObject, last: boolean) =>
    frames.push({
      part: frames.length === 0 && part === 'content' ? 'start' : part,
      text: `data: ${spaced({ candidates: [candidate], ...tail(reply, turn, last, id) })}\r\n\r\n`,
    });
  const parts = reply.pieces.flatMap((piece, index) => streamParts(piece, isFirstCall(reply, index), turn));
  const lastPart = parts.at(-1);
  // The last text part rides with the finish; after a call comes an empty closing part.
  const closes = lastPart !== undefined && lastPart.functionCall === undefined ? lastPart : { text: '' };
  const before = closes === lastPart ? parts.slice(0, -1) : parts;
  for (const part of before) say('content', { content: { parts: [part], role: 'model' }, index: 0 }, false);
  say('terminal', { content: { parts: [closes], role: 'model' }, ...closing(reply), index: 0, ...extras(reply) }, true);
  return frames;
}

function closing(reply: Reply): JsonObject {
  const finish = finishOf(reply);
  return {
    finishReason: FINISH.get(finish) ?? finish,
    ...(reply.pieces.some(({ type }) => type === 'tool') ? { finishMessage: 'Model generated function call(s).' } : {}),
  };
}

/** Only the first call of a step is signed. */
function isFirstCall(reply: Reply, index: number): boolean {
  return reply.pieces.findIndex(({ type }) => type === 'tool') === index;
}

function wholeParts(piece: Piece, firstCall: boolean, turn: Turn): JsonObject[] {
  if (piece.type === 'text') return [{ text: wholeOf(piece.text), ...signatureOf(piece, turn) }];
  if (piece.type === 'reasoning') return reasoningTexts(piece).map((text) => ({ text, thought: true }));
  return streamParts(piece, firstCall, turn);
}

function streamParts(piece: Piece, firstCall: boolean, turn: Turn): JsonObject[] {
  switch (piece.type) {
    case 'text': {
      const words: JsonObject[] = wordsOf(piece.text).map((text) => ({ text }));
      // A streamed text is signed on an empty part behind it.
      return piece.signature === undefined ? words : [...words, { text: '', ...signatureOf(piece, turn) }];
    }
    case 'refusal':
      return wordsOf(piece.text).map((text) => ({ text }));
    case 'reasoning':
      return reasoningTexts(piece).map((text) => ({ text, thought: true }));
    case 'tool': {
      const text = wholeOf(piece.arguments);
      const args = piece.custom === true ? { input: text } : argumentsOf(text);
      const call = { name: piece.name, args, ...(typeof piece.id === 'string' ? { id: piece.id } : {}) };
      if (piece.signature === undefined) return [{ functionCall: call }];
      const value =
        piece.signature === true
          ? firstCall
            ? turn.seals.issue('call', piece.name, turn.mint(''))
            : undefined
          : piece.signature;
      return [value === undefined ? { functionCall: call } : { functionCall: call, thoughtSignature: value }];
    }
    case 'image':
      return [{ inlineData: { mimeType: piece.mimeType ?? 'image/png', data: piece.data } }];
    case 'native':
      return [piece.value];
  }
}

function argumentsOf(text: string): JsonObject {
  const args = parseJson(text === '' ? '{}' : text);
  if (!isObject(args)) throw new Error('gemini arguments are an object: script a native part for others');
  return args;
}

/** One thought part a summary part, as the vendor streams them. */
function reasoningTexts(piece: Extract<Piece, { type: 'reasoning' }>): readonly string[] {
  return piece.summary ?? (piece.raw === undefined ? [] : [wholeOf(piece.raw)]);
}

function signatureOf(piece: Extract<Piece, { type: 'text' }>, turn: Turn): JsonObject {
  if (piece.signature === undefined) return {};
  return { thoughtSignature: piece.signature === true ? turn.seals.issue('text', '', turn.mint('')) : piece.signature };
}

/** Logprobs and grounding arrive with the last chunk. */
function extras(reply: Reply): JsonObject {
  const entries: TokenLogprob[] = reply.pieces.flatMap((piece) => (piece.type === 'text' ? (piece.logprobs ?? []) : []));
  const grounding = groundingOf(reply);
  if (entries.length === 0) return grounding;
  const step = ({ token, logprob }: { token: string; logprob: number }) => ({ token, logProbability: logprob });
  const tops = entries.some(({ top }) => top.length > 0)
    ? { topCandidates: entries.map(({ top }) => ({ candidates: top.map(step) })) }
    : {};
  const sum = entries.reduce((total, { logprob }) => total + logprob, 0);
  return { avgLogprobs: sum / entries.length, logprobsResult: { ...tops, chosenCandidates: entries.map(step) }, ...grounding };
}

/** Citations as grounding supports, whose offsets are UTF-8 bytes in their part. */
function groundingOf(reply: Reply): JsonObject {
  const chunks: JsonObject[] = [];
  const supports: JsonObject[] = [];
  let partIndex = 0;
  for (const piece of reply.pieces) {
    if (piece.type === 'text') {
      const text = wholeOf(piece.text);
      for (const { url, title, start, end } of piece.citations ?? []) {
        const segment = {
          ...(partIndex === 0 ? {} : { partIndex }),
          ...(start === 0 ? {} : { startIndex: Buffer.byteLength(text.slice(0, start)) }),
          endIndex: Buffer.byteLength(text.slice(0, end)),
          text: text.slice(start, end),
        };
        supports.push({ segment, groundingChunkIndices: [chunks.length] });
        chunks.push({ web: { uri: url, title } });
      }
    }
    partIndex += 1;
  }
  return chunks.length === 0
    ? {}
    : { groundingMetadata: { groundingChunks: chunks, groundingSupports: supports, webSearchQueries: ['query'] } };
}

function tail(reply: Reply, turn: Turn, last: boolean, responseId: string): JsonObject {
  const usage = usageOf(reply, JSON.stringify(turn.body.contents ?? ''));
  return {
    ...(usage === null ? {} : { usageMetadata: usageMetadata(usage, last) }),
    modelVersion: reply.model ?? turn.model,
    responseId,
  };
}

function usageMetadata(usage: UsageFigures, last: boolean): JsonObject {
  const thoughts = usage.reasoning ?? 0;
  const prompt = { promptTokensDetails: [{ modality: 'TEXT', tokenCount: usage.input }] };
  const cached = usage.cached === undefined || usage.cached === 0 ? {} : { cachedContentTokenCount: usage.cached };
  if (!last)
    return { promptTokenCount: usage.input, totalTokenCount: usage.input, ...cached, ...prompt, serviceTier: 'standard' };
  return {
    promptTokenCount: usage.input,
    candidatesTokenCount: usage.output - thoughts,
    totalTokenCount: usage.input + usage.output,
    ...cached,
    ...prompt,
    ...(thoughts === 0 ? {} : { thoughtsTokenCount: thoughts }),
    serviceTier: 'standard',
    ...(usage.extra ?? {}),
  };
}

/** The vendor's streaming spelling: a space after the colon, none after the comma. */
function spaced(value: JsonValue): string {
  if (isArray(value)) return `[${value.map(spaced).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.entries(value).filter((entry): entry is [string, JsonValue] => entry[1] !== undefined);
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}: ${spaced(member)}`).join(',')}}`;
}
