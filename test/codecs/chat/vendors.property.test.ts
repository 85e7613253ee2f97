/**
 * An answer means the same in every vendor's spelling: arbitrary answers, written as the literal chunks of `vendors.ts` with
 * chunks between them that say nothing, decode to themselves, and leave for a chat client under the logical model with one report
 * of usage.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { fold } from '../../../src/codecs/canonical/fold.ts';
import type { JsonObject } from '../../../src/codecs/canonical/json.ts';
import { decode, encode, frame, requestOf, responseContext } from './support.ts';
import { type Answer, choice, reason, VENDORS } from './vendors.ts';

/** Chunks that say nothing of the answer. */
const SILENT: readonly JsonObject[] = [
  { choices: [] },
  { choices: null },
  { choices: [], usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } },
  { choices: [{ index: 1, delta: { content: 'another candidate' }, finish_reason: 'length' }] },
  choice({}),
  choice({ role: 'assistant', content: '', refusal: null, tool_calls: null, function_call: null }),
  choice({ content: null, reasoning_content: '', reasoning: null, reasoning_details: [], tool_calls: [null] }),
  { choices: [{ index: 0, delta: null, finish_reason: '' }], error: null },
];

const words = (minLength: number): fc.Arbitrary<string[]> =>
  fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 5 }), { minLength, maxLength: 4 });
const tool = fc
  .tuple(fc.constantFrom('get', 'get_weather'), fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 1 }), { maxKeys: 2 }))
  .chain(([name, said]) => {
    const text = JSON.stringify(said);
    const cuts = fc
      .array(fc.nat(text.length), { maxLength: 3 })
      .map((at) => [...new Set([0, ...at, text.length])].sort((a, b) => a - b));
    return cuts.map((at) => ({ name, pieces: at.slice(1).map((end, index) => text.slice(at[index], end)) }));
  });
const answer: fc.Arbitrary<Answer> = fc
  .record({
    thought: words(0),
    text: words(0),
    tools: fc.array(tool, { maxLength: 3 }),
    isCut: fc.boolean(),
    size: fc.integer({ min: 9, max: 99 }),
  })
  .map(({ thought, text, tools, isCut, size }) => ({
    thought,
    text,
    calls: tools.map((one, at) => ({ ...one, id: `call_${at}` })),
    isCut: isCut && tools.length === 0,
    usage: { prompt: 2 * size, cached: size, completion: size, reasoning: size - 3 },
  }));

describe('the vendors of chat completions', () => {
  for (const [name, vendor] of Object.entries(VENDORS)) {
    it(`${name}: an answer means what was meant`, () => {
      const noise = fc.array(fc.tuple(fc.nat(), fc.constantFrom(...SILENT)), { maxLength: 4 });
      fc.assert(
        fc.property(answer, noise, fc.boolean(), fc.boolean(), (meant, silent, hasDone, endsWithLast) => {
          // A vendor without ids and indices can say one call.
          const said = vendor.hasIds === false ? { ...meant, calls: meant.calls.slice(0, 1) } : meant;
          const body = [
            ...said.thought.map(vendor.thought),
            ...said.text.map(vendor.text ?? ((content) => ({ content }))),
            ...said.calls.flatMap(vendor.call),
          ].map((delta, at, all) => choice(delta, endsWithLast && at === all.length - 1 ? reason(said) : null));
          for (const [at, one] of silent) body.splice(at % (body.length + 1), 0, one);
          const chunks = [...body, ...vendor.end(said)].map((one) =>
            frame({ id: 'up-1', created: 1, model: 'up-model', ...one }),
          );
          const { steps } = decode(hasDone ? [...chunks, frame('[DONE]')] : chunks);
          const { items, outcome, usage } = fold(steps.flatMap(({ events }) => events));
          const kinds = items.map(({ item }) => item);
          const { prompt, cached, completion, reasoning } = said.usage;
          assert.deepEqual(
            {
              thought: kinds.map((item) => (item.kind === 'reasoning' ? item.raw : '')).join(''),
              text: kinds.map((item) => (item.kind === 'text' ? item.text : '')).join(''),
              calls: kinds.flatMap((item) => (item.kind === 'toolCall' ? [[item.tool.name, item.input]] : [])),
              ids: new Set(kinds.flatMap((item) => (item.kind === 'toolCall' ? [item.callId] : []))).size,
              end: outcome.status === 'incomplete' ? outcome.reason : outcome.status,
              usage: [usage?.input, usage?.cacheRead, usage?.output, usage?.reasoning],
            },
            {
              thought: said.thought.join(''),
              text: said.text.join(''),
              calls: said.calls.map((call) => [call.name, call.pieces.join('')]),
              ids: said.calls.length,
              end: said.isCut ? 'max_output' : 'completed',
              usage: [prompt - cached, cached, completion, reasoning],
            },
          );
          const asking = {
            model: 'm',
            messages: [{ role: 'user', content: 'hi' }],
            stream: true,
            stream_options: { include_usage: true },
          };
          const heard = encode(steps, responseContext({ request: requestOf(asking) }));
          assert.equal(heard.filter((data) => data.includes('up-model')).length, 0);
          const chunksHeard = heard.flatMap((data) => (data === '[DONE]' ? [] : [JSON.parse(data)]));
          assert.deepEqual(
            chunksHeard.flatMap(({ usage, choices }) => (usage === undefined || usage === null ? [] : [choices])),
            [[]],
          );
          const callsHeard: { name: string; input: string }[] = [];
          const entries = chunksHeard.flatMap(({ choices }) => choices?.[0]?.delta?.tool_calls ?? []);
          for (const { index, function: piece } of entries.filter((entry) => entry !== null)) {
            callsHeard[index] ??= { name: '', input: '' };
            callsHeard[index].name ||= piece.name ?? '';
            callsHeard[index].input += piece.arguments ?? '';
          }
          assert.deepEqual(
            callsHeard,
            said.calls.map((call) => ({ name: call.name, input: call.pieces.join('') })),
          );
        }),
        { numRuns: 40 },
      );
    });
  }
});
