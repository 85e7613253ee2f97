/**
 * What a generative-content upstream sends for an answer, written literally from the protocol's notes: each chunk holds the new
 * parts of candidate 0, grounding and the finish reason come in the last one, usage in every one.
 */
import type { Citation, OutputItem } from '../../src/codecs/canonical/item.ts';
import { type Answer, cut } from './arbitraries/response.ts';

interface WirePart {
  readonly text?: string;
  readonly thought?: true;
  readonly thoughtSignature?: string;
  readonly functionCall?: object;
  readonly inlineData?: object;
}

export function writeGemini(said: Answer, cuts: readonly number[], apart: boolean): Uint8Array {
  const chunks: WirePart[][] = [];
  const supports: object[] = [];
  const sources: object[] = [];
  let visible = 0;
  for (const item of said.items) {
    // Pieces of one part come in chunks of their own; parts of other items may share one.
    for (const piece of partsOf(item, cuts)) chunks.push([piece]);
    if (item.kind !== 'text') continue;
    for (const citation of item.citations) {
      if (citation.kind !== 'url') continue;
      sources.push({ web: { uri: citation.url, title: citation.title } });
      supports.push({ segment: segmentOf(item.text, citation, visible), groundingChunkIndices: [sources.length - 1] });
    }
    visible += Buffer.byteLength(item.text);
  }
  if (apart || chunks.length === 0) chunks.push([]);
  const usage = said.usage === undefined ? undefined : usageOf(said.usage);
  const lines = chunks.map((parts, index) => {
    const isLast = index === chunks.length - 1;
    const grounding =
      isLast && supports.length > 0 ? { groundingMetadata: { groundingChunks: sources, groundingSupports: supports } } : {};
    const content = parts.length === 0 ? {} : { content: { role: 'model', parts } };
    const finish = isLast ? { finishReason: finishOf(said) } : {};
    return {
      candidates: [{ ...content, ...finish, index: 0, ...grounding }],
      ...(usage === undefined ? {} : { usageMetadata: usage }),
      modelVersion: 'up-model',
      responseId: 'up_1',
    };
  });
  return new TextEncoder().encode(lines.map((line) => `data: ${JSON.stringify(line)}\r\n\r\n`).join(''));
}

function partsOf(item: OutputItem, cuts: readonly number[]): WirePart[] {
  const signature = 'opaque' in item && item.opaque !== undefined ? { thoughtSignature: item.opaque.value } : {};
  switch (item.kind) {
    case 'text':
      return signLast(
        cut(item.text, cuts).map((text) => ({ text })),
        signature,
      );
    case 'reasoning': {
      const thoughts = (item.summary ?? []).flatMap((part) => cut(part, cuts)).map((text) => ({ text, thought: true as const }));
      return thoughts.length === 0 ? [{ text: '', thought: true, ...signature }] : signLast(thoughts, signature);
    }
    case 'toolCall': {
      const args: unknown = JSON.parse(item.input);
      // Most servers send no ids: every other call stands for them.
      const id = item.callId.charCodeAt(item.callId.length - 1) % 2 === 0 ? {} : { id: item.callId };
      return [{ functionCall: { ...id, name: item.tool.name, args: args as object }, ...signature }];
    }
    case 'media': {
      const { source } = item.media;
      return source.from === 'inline' ? [{ inlineData: { mimeType: source.mime, data: source.data }, ...signature }] : [];
    }
    default:
      return [];
  }
}

/** The signature of a streamed part sits on its last piece. */
function signLast(parts: readonly WirePart[], signature: object): WirePart[] {
  return parts.map((part, index) => (index === parts.length - 1 ? { ...part, ...signature } : part));
}

/** Bytes of the whole visible text, as servers count them; a start of 0 is left out. */
function segmentOf(text: string, citation: Extract<Citation, { kind: 'url' }>, before: number): object {
  const points = [...text];
  const bytes = (end: number): number => Buffer.byteLength(points.slice(0, end).join(''));
  const start = before + bytes(citation.start ?? 0);
  return { ...(start === 0 ? {} : { startIndex: start }), endIndex: before + bytes(citation.end ?? 0) };
}

function finishOf({ outcome }: Answer): string {
  if (outcome.status !== 'incomplete') return 'STOP';
  return outcome.reason === 'max_output' ? 'MAX_TOKENS' : 'SAFETY';
}

function usageOf({ input = 0, cacheRead = 0, output = 0, reasoning = 0 }: NonNullable<Answer['usage']>): object {
  return {
    promptTokenCount: input + cacheRead,
    cachedContentTokenCount: cacheRead,
    candidatesTokenCount: output - reasoning,
    thoughtsTokenCount: reasoning,
    totalTokenCount: input + cacheRead + output,
  };
}
