/**
 * What the demonstration's model answers: a paragraph of the documents that is about the question, with the logprobs of an n-gram
 * model, calls of tools that are demanded, answers about tool results, reasoning when asked for. Deterministic in the prompt and
 * the seed. Knows no dialect.
 */
import type { Prompt, PromptTool } from './dialect.ts';
import type { Knowledge } from './corpus.ts';
import { type Context, type NgramModel, PARAGRAPH_START, tokenize } from './ngram.ts';
import { pick, type Random, seededRandom, seedOf } from './random.ts';
import type { Piece, Reply, TokenLogprob } from './reply.ts';
import { sampleSchema } from './sample-schema.ts';

/** A picture for `drawImage`, base64 PNG. */
export type Draw = (prompt: string) => string;

/** An answer without a cap ends by itself; this is for a paragraph that does not. */
const LONGEST = 220;
/** Paragraphs about a question that chance may choose among. */
const CHOICE = 3;

export function demonstrate(prompt: Prompt, knowledge: Knowledge, draw: Draw): Reply {
  const random = seededRandom(prompt.seed === undefined ? seedOf(prompt.text) : prompt.seed >>> 0);
  const input = Math.max(1, tokenize(prompt.text).length);
  const faces = prompt.reasoning;
  const thought = faces !== undefined ? think(prompt, knowledge) : [];
  const pieces: Piece[] = [];
  // Vendors count reasoning into the output cap.
  const reasoning = Math.min(thought.length, prompt.maxTokens ?? Number.POSITIVE_INFINITY);
  if (reasoning > 0) {
    const text = thought.slice(0, reasoning).join('');
    pieces.push({
      type: 'reasoning',
      ...(faces?.raw === true ? { raw: text } : {}),
      ...(faces?.summary === true ? { summary: [text] } : {}),
      ...(faces?.opaque === true ? { opaque: true } : {}),
    });
  }
  const left = prompt.maxTokens === undefined ? LONGEST : prompt.maxTokens - reasoning;
  if (left <= 0) return { pieces, finish: 'length', usage: { input, output: reasoning, reasoning } };
  if (prompt.drawImage) {
    pieces.push({ type: 'image', data: draw(prompt.lastUserText) });
    return { pieces, usage: { input, output: reasoning + 16, reasoning } };
  }
  const calls = callsFor(prompt).map((tool) => callOf(tool, random, prompt));
  if (calls.length > 0) {
    const output = calls.reduce((sum, call) => sum + tokenize(`${call.name}${call.arguments}`).length, 0);
    return { pieces: [...pieces, ...calls], usage: { input, output: reasoning + output, reasoning } };
  }
  const said = speak(prompt, knowledge, random);
  const { tokens, stopped, capped } = limit(said, prompt.stop, prompt.maxTokens === undefined ? LONGEST : left);
  pieces.push({
    type: 'text',
    text: tokens.map(({ token }) => token),
    ...(prompt.topLogprobs === undefined ? {} : { logprobs: tokens }),
    ...(faces?.opaque === true ? { signature: true } : {}),
  });
  return {
    pieces,
    finish: capped ? 'length' : 'stop',
    ...(stopped === undefined ? {} : { stopSequence: stopped }),
    usage: { input, output: reasoning + tokens.length, reasoning },
  };
}

function think({ lastUserText }: Prompt, { recall }: Knowledge): readonly string[] {
  const found = recall(lastUserText).length;
  const known =
    found === 0 ? 'None of the documents that I know is about it' : `${found} paragraphs that I know share words with it`;
  return tokenize(`The question has ${tokenize(lastUserText).length} words. ${known}, so I answer with one of them.`);
}

/** A paragraph about the question where there is one; the best at temperature 0, else one of the best by chance. */
function paragraphFor({ lastUserText, temperature }: Prompt, { recall, paragraphs }: Knowledge, random: Random): string {
  const found = recall(lastUserText);
  const choice = found.length > 0 ? found.slice(0, CHOICE) : paragraphs;
  return (temperature === 0 ? choice[0] : pick(random, choice)) ?? '';
}

function inTokens(text: string, model: NgramModel, top: number): TokenLogprob[] {
  let context: Context = PARAGRAPH_START;
  return tokenize(text).map((token) => {
    const likeliest = top === 0 ? [] : model.likeliest(context, top);
    const entry = {
      token,
      logprob: Math.log(model.probability(context, token)),
      top: likeliest.map((each) => ({ token: each.token, logprob: Math.log(each.probability) })),
    };
    context = [context[1], token];
    return entry;
  });
}

/** A text that could not be otherwise: probability one a token. */
function certain(text: string, top: number): TokenLogprob[] {
  return tokenize(text).map((token) => ({ token, logprob: 0, top: top === 0 ? [] : [{ token, logprob: 0 }] }));
}

function speak(prompt: Prompt, knowledge: Knowledge, random: Random): TokenLogprob[] {
  const top = prompt.topLogprobs ?? 0;
  if (prompt.answerSchema !== undefined) {
    const schema = Object.keys(prompt.answerSchema).length === 0 ? JSON_OBJECT : prompt.answerSchema;
    return certain(JSON.stringify(sampleSchema(schema, random)), top);
  }
  const results = prompt.toolResults.map(({ name, text }) => `The tool ${name || 'called'} answered: ${text.slice(0, 400)}`);
  const opening = results.length === 0 ? [] : certain(`${results.join('\n')}\n`, top);
  const body = inTokens(paragraphFor(prompt, knowledge, random), knowledge.ngrams, top);
  return opening.length === 0 && body.length === 0 ? certain('Yes.', top) : [...opening, ...body];
}

const JSON_OBJECT = { type: 'object', properties: { answer: { type: 'string' } }, required: ['answer'] };

interface Limited {
  readonly tokens: readonly TokenLogprob[];
  /** The stop string that was met. */
  readonly stopped: string | undefined;
  readonly capped: boolean;
}

/** Cuts before the first stop string, wherever in the tokens it lies, and at the cap. */
export function limit(tokens: readonly TokenLogprob[], stops: readonly string[], most: number): Limited {
  let text = '';
  const kept: TokenLogprob[] = [];
  for (const entry of tokens) {
    if (kept.length >= most) return { tokens: kept, stopped: undefined, capped: true };
    text += entry.token;
    kept.push(entry);
    const met = firstStop(text, stops);
    if (met !== undefined) return { tokens: trimTo(kept, met.at), stopped: met.stop, capped: false };
  }
  return { tokens: kept, stopped: undefined, capped: false };
}

function firstStop(text: string, stops: readonly string[]): { readonly at: number; readonly stop: string } | undefined {
  let best: { at: number; stop: string } | undefined;
  for (const stop of stops) {
    const at = stop === '' ? -1 : text.indexOf(stop);
    if (at >= 0 && (best === undefined || at < best.at)) best = { at, stop };
  }
  return best;
}

function trimTo(tokens: readonly TokenLogprob[], length: number): TokenLogprob[] {
  const kept: TokenLogprob[] = [];
  let left = length;
  for (const entry of tokens) {
    if (left <= 0) break;
    kept.push(entry.token.length <= left ? entry : { ...entry, token: entry.token.slice(0, left) });
    left -= entry.token.length;
  }
  return kept;
}

/** The tools to call now: the one demanded, those that the user says to use or call, or the first when any is demanded. */
function callsFor(prompt: Prompt): readonly PromptTool[] {
  const { tools, toolChoice, lastUserText } = prompt;
  if (toolChoice === 'none' || tools.length === 0) return [];
  if (typeof toolChoice === 'object') return tools.filter(({ name }) => name === toolChoice.name).slice(0, 1);
  // After a result the model answers, even where a call is demanded each time, so that a loop ends only by the caller's choice.
  if (prompt.toolResults.length > 0 && toolChoice === 'auto') return [];
  // The name alone is no demand: `read` and `look` are words, too.
  const text = /\b(use|call)\b/i.test(lastUserText) ? lastUserText.toLowerCase() : '';
  const named = tools.filter(({ name }) => text.includes(name.toLowerCase()));
  if (named.length > 0) return prompt.parallel ? named : named.slice(0, 1);
  return toolChoice === 'required' ? tools.slice(0, 1) : [];
}

function callOf(
  tool: PromptTool,
  random: Random,
  prompt: Prompt,
): { type: 'tool'; name: string; arguments: string } & Partial<Piece> {
  const place = tool.namespace === undefined ? {} : { namespace: tool.namespace };
  if (tool.custom) return { type: 'tool', name: tool.name, arguments: 'print("hello")\n', custom: true, ...place };
  const value = sampleSchema(Object.keys(tool.schema).length === 0 ? { type: 'object' } : tool.schema, random);
  return {
    type: 'tool',
    name: tool.name,
    arguments: JSON.stringify(value),
    ...(prompt.reasoning?.opaque === true ? { signature: true } : {}),
    ...place,
  };
}
