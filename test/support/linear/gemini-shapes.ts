/** Literal streams of gemini upstreams: much of one thing each. */
import type { StreamShape } from './answer-shapes.ts';
import { list } from './schema-shapes.ts';

const gemini = (name: string, events: (count: number) => readonly object[]): StreamShape => ({
  name,
  dialect: 'gemini',
  events: (count) => [...events(count), candidate([], { finishReason: 'STOP' })],
});
const usageMetadata = { promptTokenCount: 7, candidatesTokenCount: 5, totalTokenCount: 12 };
const candidate = (parts: readonly object[], rest: object = {}, more: object = {}) => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...rest }],
  usageMetadata,
  modelVersion: 'up',
  ...more,
});
const web = (at: number) => ({ web: { uri: `https://e.example/${at}`, title: 't' } });

export const GEMINI: readonly StreamShape[] = [
  gemini('usage, a new member each', (count) =>
    list(count, (at) => candidate([{ text: 'x' }], {}, { usageMetadata: { ...usageMetadata, [`x${at}`]: at } })),
  ),
  gemini('usage, a list of details each', (count) =>
    list(count, () =>
      candidate(
        [{ text: 'x' }],
        {},
        { usageMetadata: { ...usageMetadata, promptTokensDetails: [{ modality: 'TEXT', tokenCount: 7 }] } },
      ),
    ),
  ),
  gemini('texts, thoughts and calls in turn', (count) =>
    list(count, (at) =>
      candidate([[{ text: 'x' }, { text: 't', thought: true }, { functionCall: { name: 'f', args: { at } } }][at % 3] ?? {}]),
    ),
  ),
  gemini('all parts in one chunk', (count) => [
    candidate(
      list(
        count,
        (at) => [{ text: 'x' }, { text: 't', thought: true }, { functionCall: { name: 'f', args: { at } } }][at % 3] ?? {},
      ),
    ),
  ]),
  gemini('signed texts', (count) => list(count, () => candidate([{ text: 'said ', thoughtSignature: 'QUJD' }]))),
  gemini('signed thoughts and calls', (count) =>
    list(count, (at) =>
      candidate([
        { text: 't', thought: true, thoughtSignature: 'QUJD' },
        { functionCall: { id: `i${at}`, name: 'f', args: {} }, thoughtSignature: 'QUJD' },
      ]),
    ),
  ),
  gemini('signatures without words', (count) => list(count, () => candidate([{ text: '', thoughtSignature: 'QUJD' }]))),
  gemini('arguments in pieces', (count) => [
    candidate([{ functionCall: { name: 'f', id: 'i', willContinue: true } }]),
    ...list(count, () =>
      candidate([
        { functionCall: { partialArgs: [{ jsonPath: '$.a', stringValue: 'x', willContinue: true }], willContinue: true } },
      ]),
    ),
    candidate([{ functionCall: { partialArgs: [{ jsonPath: '$.a', stringValue: 'x' }] } }]),
  ]),
  gemini('arguments in pieces, a member each', (count) => [
    candidate([{ functionCall: { name: 'f', id: 'i', willContinue: true } }]),
    ...list(count, (at) =>
      candidate([{ functionCall: { partialArgs: [{ jsonPath: `$.a${at}`, numberValue: at }], willContinue: true } }]),
    ),
    candidate([{ functionCall: {} }]),
  ]),
  gemini('arguments in pieces, an element each', (count) => [
    candidate([{ functionCall: { name: 'f', id: 'i', willContinue: true } }]),
    ...list(count, (at) =>
      candidate([{ functionCall: { partialArgs: [{ jsonPath: `$.a[${at}].b`, stringValue: 'x' }], willContinue: true } }]),
    ),
    candidate([{ functionCall: {} }]),
  ]),
  gemini('grounding that grows', (count) =>
    list(Math.ceil(Math.sqrt(count)), (at) =>
      candidate([{ text: 'said ' }], {
        groundingMetadata: {
          groundingChunks: list(at + 1, web),
          groundingSupports: list(at + 1, (n) => ({
            segment: { startIndex: n * 5, endIndex: n * 5 + 4, text: 'said' },
            groundingChunkIndices: [n],
          })),
        },
      }),
    ),
  ),
  gemini('grounding, one source for all', (count) => [
    candidate([{ text: 'é said '.repeat(count) }], {
      groundingMetadata: {
        groundingChunks: [web(0)],
        groundingSupports: list(count, (at) => ({
          segment: { startIndex: at * 8, endIndex: at * 8 + 7, text: 'é said' },
          groundingChunkIndices: [0],
        })),
      },
    }),
  ]),
  gemini('grounding, all sources for one', (count) => [
    candidate([{ text: 'said' }], {
      groundingMetadata: {
        groundingChunks: list(count, web),
        groundingSupports: [{ segment: { endIndex: 4, text: 'said' }, groundingChunkIndices: list(count, (at) => at) }],
      },
    }),
  ]),
  gemini('grounding, one long link for all', (count) => [
    candidate([{ text: 'said '.repeat(count) }], {
      groundingMetadata: {
        groundingChunks: [{ web: { uri: `https://e.example/${'u'.repeat(200 * count)}`, title: 't' } }],
        groundingSupports: list(count, (at) => ({
          segment: { startIndex: at * 5, endIndex: at * 5 + 4, text: 'said' },
          groundingChunkIndices: [0],
        })),
      },
    }),
  ]),
  gemini('grounding, all sources for all of the text', (count) => [
    candidate([{ text: 'said '.repeat(20 * count) }], {
      groundingMetadata: {
        groundingChunks: list(count, web),
        groundingSupports: [
          {
            segment: { endIndex: 100 * count, text: 'said '.repeat(20 * count) },
            groundingChunkIndices: list(count, (at) => at),
          },
        ],
      },
    }),
  ]),
  gemini('grounding, a long link again and again for one', (count) => [
    candidate([{ text: 'said' }], {
      groundingMetadata: {
        groundingChunks: [{ web: { uri: `https://e.example/${'u'.repeat(200 * count)}` } }],
        groundingSupports: [{ segment: { endIndex: 4, text: 'said' }, groundingChunkIndices: list(count, () => 0) }],
      },
    }),
  ]),
  gemini('grounding whose numbers are off', (count) => [
    candidate([{ text: list(count, (at) => `Sentence number ${at}. `).join('') }], {
      groundingMetadata: {
        groundingChunks: [web(0)],
        groundingSupports: list(count, (at) => ({
          segment: { startIndex: at, endIndex: at + 1, text: `number ${at}` },
          groundingChunkIndices: [0],
        })),
      },
    }),
  ]),
  gemini('grounding of words that are not there', (count) => [
    candidate([{ text: 'a'.repeat(count * 4) }], {
      groundingMetadata: {
        groundingChunks: [web(0)],
        groundingSupports: list(count, (at) => ({
          segment: { startIndex: at, endIndex: at + 3, text: `${'a'.repeat(20)}b${at}` },
          groundingChunkIndices: [0],
        })),
      },
    }),
  ]),
  gemini('grounding of texts all over', (count) => [
    ...list(count, (at) => candidate([at % 2 === 0 ? { text: 'said ' } : { text: 't', thought: true }])),
    candidate([], {
      groundingMetadata: {
        groundingChunks: list(count, web),
        groundingSupports: list(count, (at) => ({
          segment: { startIndex: at * 2, endIndex: at * 2 + 2, text: 'sa' },
          groundingChunkIndices: [at],
        })),
      },
    }),
  ]),
  gemini('citation metadata', (count) =>
    list(count, (at) =>
      candidate([{ text: 'é said ' }], {
        citationMetadata: { citationSources: [{ startIndex: at * 8, endIndex: at * 8 + 2, uri: `https://e.example/${at}` }] },
      }),
    ),
  ),
  gemini('logprobs', (count) =>
    list(count, () =>
      candidate([{ text: 'a' }], {
        logprobsResult: {
          chosenCandidates: [{ token: 'a', logProbability: -1 }],
          topCandidates: [{ candidates: [{ token: 'a', logProbability: -1 }] }],
        },
      }),
    ),
  ),
  gemini('pictures', (count) => list(count, () => candidate([{ inlineData: { mimeType: 'image/png', data: 'AAAA' } }]))),
  gemini('parts of the vendor', (count) =>
    list(count, (at) =>
      candidate([
        { executableCode: { language: 'PYTHON', code: `x${at}` } },
        { codeExecutionResult: { outcome: 'OUTCOME_OK', output: 'x' } },
        { novelty: at },
      ]),
    ),
  ),
  gemini('other candidates', (count) => [
    {
      candidates: list(count, (at) => ({ index: count - at, content: { role: 'model', parts: [{ text: 'x' }] } })),
      usageMetadata,
    },
  ]),
];
