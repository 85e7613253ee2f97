/** Answers of a size that can be chosen, each with much of one thing, which every dialect writes in its own way. */
import type { OutputItem } from '../../../src/codecs/canonical/item.ts';
import type { Answer } from '../arbitraries/response.ts';
import { list } from './schema-shapes.ts';

export type UpstreamDialect = 'chat' | 'responses' | 'messages' | 'gemini';

/** What a stream says, one payload an event; or the text of its body, where that matters. */
export interface StreamShape {
  readonly name: string;
  readonly dialect: UpstreamDialect;
  readonly events: (count: number) => readonly (object | string)[];
}
export interface BodyShape {
  readonly name: string;
  readonly dialect: UpstreamDialect;
  readonly body: (count: number) => object;
}

const said = (items: readonly OutputItem[]): Answer => ({
  items,
  usage: { input: 10, output: 10 },
  outcome: { status: 'completed', stop: items.some(({ kind }) => kind === 'toolCall') ? 'toolUse' : 'end' },
});
const text = (value: string): OutputItem => ({ kind: 'text', role: 'assistant', text: value, citations: [] });
const call = (at: number): OutputItem => ({
  kind: 'toolCall',
  toolType: 'function',
  callId: `call_${at}`,
  tool: { name: 'f' },
  input: `{"a":"${at}"}`,
});
const thought = (at: number): OutputItem => ({ kind: 'reasoning', summary: [`thought ${at}`] });

/** Answers that every dialect can say. `pieces`: into how many pieces each text is cut. */
export const ANSWERS: readonly {
  readonly name: string;
  readonly answer: (count: number) => Answer;
  readonly pieces?: (count: number) => number;
  readonly interleaved?: boolean;
}[] = [
  {
    name: 'one text in many pieces',
    answer: (count) => said([text('words of an answer '.repeat(count))]),
    pieces: (count) => count,
  },
  { name: 'a long text in one piece', answer: (count) => said([text('words "of" an answer\n'.repeat(count * 4))]) },
  { name: 'calls', answer: (count) => said(list(count, call)) },
  { name: 'calls side by side', answer: (count) => said(list(count, call)), pieces: () => 3, interleaved: true },
  {
    name: 'a call with long arguments',
    answer: (count) =>
      said([
        {
          kind: 'toolCall',
          toolType: 'function',
          callId: 'call_1',
          tool: { name: 'f' },
          input: JSON.stringify({ a: 'x"\\'.repeat(count * 5) }),
        },
      ]),
    pieces: (count) => count,
  },
  {
    name: 'texts and thoughts in turn',
    answer: (count) => said(list(count, (at) => (at % 2 === 0 ? thought(at) : text(`text ${at} `)))),
  },
  {
    name: 'texts and calls in turn',
    answer: (count) => said(list(count, (at) => (at % 2 === 0 ? text(`text ${at} `) : call(at)))),
  },
  {
    name: 'thoughts, texts and calls in turn',
    answer: (count) => said(list(count, (at) => [thought, (n: number) => text(`text ${n} `), call][at % 3]?.(at) ?? call(at))),
  },
  {
    name: 'a thought of many parts',
    answer: (count) => said([{ kind: 'reasoning', summary: list(count, (at) => `part ${at}`) }, text('done')]),
  },
  {
    name: 'a long thought in many pieces',
    answer: (count) => said([{ kind: 'reasoning', summary: ['thinking '.repeat(count * 2)] }, text('x')]),
    pieces: (count) => count,
  },
];
