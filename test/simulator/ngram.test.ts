/** The n-gram model is a probability distribution, and the demonstration says its true numbers. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { lazyKnowledge, learn, proseOf } from '../../src/simulator/corpus.ts';
import { demonstrate, limit } from '../../src/simulator/demonstration.ts';
import type { Prompt } from '../../src/simulator/dialect.ts';
import { type Context, PARAGRAPH_START, tokenize } from '../../src/simulator/ngram.ts';
import { type Reply, type TextPiece, wholeOf } from '../../src/simulator/reply.ts';

const textOfPieces = (pieces: Reply['pieces']): string =>
  pieces.map((piece) => (piece.type === 'text' || piece.type === 'refusal' ? wholeOf(piece.text) : '')).join('');

const TEXTS = [
  'The river runs to the sea, and the sea keeps the river.',
  'A stone in the river is older than the sea.',
  'The stone does not run; the river runs round it.',
];
const knowledge = learn(TEXTS);
const model = knowledge.ngrams;

const PROMPT: Prompt = {
  text: 'tell me',
  lastUserText: 'tell me',
  tools: [],
  toolChoice: 'auto',
  parallel: true,
  toolResults: [],
  stop: [],
  drawImage: false,
};
const say = (prompt: Partial<Prompt>) => demonstrate({ ...PROMPT, ...prompt }, knowledge, () => 'cGlj');
const textPiece = (prompt: Partial<Prompt>): TextPiece => {
  const piece = say(prompt).pieces.find(({ type }) => type === 'text');
  assert.ok(piece?.type === 'text');
  return piece;
};

test('tokens joined again are the text', () => {
  for (const text of [...TEXTS, 'a  b\n\nc — “d” 12.5% 你好 🎈x']) assert.equal(tokenize(text).join(''), text);
});

test('the probabilities of all tokens sum to one, in seen and unseen contexts', () => {
  const contexts: Context[] = [PARAGRAPH_START, [' the', ' river'], [' nowhere', ' river'], ['x', 'y']];
  for (const context of contexts) {
    const sum = model.vocabulary.reduce((total, token) => total + model.probability(context, token), 0);
    assert.ok(Math.abs(sum - 1) < 1e-9, `${context.join('|')}: ${sum}`);
  }
});

test('the same seed says the same, another seed another thing, temperature 0 the best', () => {
  assert.deepEqual(say({ seed: 1 }), say({ seed: 1 }));
  const said = new Set([1, 2, 3, 4, 5].map((seed) => textOfPieces(say({ seed }).pieces)));
  assert.ok(said.size > 1);
  assert.equal(textOfPieces(say({ seed: 1, temperature: 0 }).pieces), textOfPieces(say({ seed: 2, temperature: 0 }).pieces));
});

test('logprobs are the model’s own, the chosen token’s and the best alternatives', () => {
  const piece = textPiece({ topLogprobs: 3, seed: 5 });
  let context = PARAGRAPH_START;
  for (const { token, logprob, top } of piece.logprobs ?? []) {
    assert.ok(Math.abs(Math.exp(logprob) - model.probability(context, token)) < 1e-12);
    assert.ok(top.length <= 3 && top.every((entry, index) => index === 0 || entry.logprob <= (top[index - 1]?.logprob ?? 0)));
    context = [context[1], token];
  }
  assert.equal((piece.logprobs ?? []).map(({ token }) => token).join(''), textOfPieces([piece]));
  assert.equal(textPiece({ seed: 5 }).logprobs, undefined);
});

test('a cap ends with length after exactly so many tokens', () => {
  const reply = say({ maxTokens: 3, seed: 2 });
  assert.equal(reply.finish, 'length');
  assert.equal(reply.usage?.output, 3);
});

test('a stop string cuts before it, inside and across tokens', () => {
  const tokens = ['ab', 'cd', 'ef'].map((token) => ({ token, logprob: -1, top: [] }));
  const at = (...stops: string[]) => {
    const { tokens: kept, stopped } = limit(tokens, stops, 99);
    return [kept.map(({ token }) => token).join('|'), stopped];
  };
  assert.deepEqual(at('d'), ['ab|c', 'd']);
  assert.deepEqual(at('bc'), ['a', 'bc']);
  assert.deepEqual(at('ab'), ['', 'ab']);
  assert.deepEqual(at('f', 'cd'), ['ab', 'cd']);
  assert.deepEqual(at('zz', ''), ['ab|cd|ef', undefined]);
});

test('the answer is about the question where a paragraph is', () => {
  const about = (lastUserText: string) => textOfPieces(say({ lastUserText, temperature: 0 }).pieces);
  assert.equal(about('Who is older, and what is a stone?'), TEXTS[1]);
  assert.equal(about('round and round'), TEXTS[2]);
  assert.ok(TEXTS.includes(about('Bonjour!')));
});

test('tools: demanded by the request or in the user’s words, forbidden, answered; never for a word alone', () => {
  const tools = ['get_weather', 'get_time', 'read'].map((name) => ({ name, custom: false, schema: { type: 'object' } }));
  const names = (prompt: Partial<Prompt>) =>
    say({ tools, ...prompt }).pieces.flatMap((piece) => (piece.type === 'tool' ? [piece.name] : []));
  assert.deepEqual(names({}), []);
  assert.deepEqual(names({ lastUserText: 'What have you read?' }), []);
  assert.deepEqual(names({ lastUserText: 'Call get_time and GET_WEATHER' }), ['get_weather', 'get_time']);
  assert.deepEqual(names({ lastUserText: 'use get_time, get_weather', parallel: false }), ['get_weather']);
  assert.deepEqual(names({ toolChoice: 'required' }), ['get_weather']);
  assert.deepEqual(names({ toolChoice: { name: 'get_time' } }), ['get_time']);
  assert.deepEqual(names({ toolChoice: 'none', lastUserText: 'use get_time' }), []);
  const answered = { lastUserText: 'use get_time', toolResults: [{ name: 'get_time', text: 'noon' }] };
  assert.deepEqual(names(answered), []);
  assert.match(textOfPieces(say({ tools, ...answered }).pieces), /get_time answered: noon/);
});

test('reasoning shows the faces asked for and counts as output', () => {
  const reply = say({ reasoning: { raw: true, summary: false, opaque: true } });
  const [thought] = reply.pieces;
  assert.ok(
    thought?.type === 'reasoning' && thought.raw !== undefined && thought.summary === undefined && thought.opaque === true,
  );
  assert.ok((reply.usage?.reasoning ?? 0) > 0 && (reply.usage?.output ?? 0) > (reply.usage?.reasoning ?? 0));
});

test('prose is learnt from documents: no code, headings, tables', () => {
  const paragraphs = proseOf(
    '# Title\n\nThis is a `paragraph` with a [link](x), long enough to be\nlearnt from.\n\n```sh\nnpm start and more of it.\n```\n\n| a | b |\n',
  );
  assert.deepEqual(paragraphs, ['This is a paragraph with a link, long enough to be learnt from.']);
});

test('a folder’s documents are what the model says', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'simulator-docs-'));
  const sentences = ['Otters', 'Badgers', 'Herons', 'Lynxes'].map(
    (name) => `${name} sleep beside the quiet river until the moon is up.`,
  );
  writeFileSync(join(folder, 'README.md'), `# Title\n\n${sentences.join('\n\n')}\n`);
  const { ngrams: taught } = lazyKnowledge(folder)();
  rmSync(folder, { recursive: true });
  assert.ok(taught.vocabulary.includes('Otters') && !taught.vocabulary.includes(' gateway'));
});
