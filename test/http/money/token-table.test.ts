/** The flat token table: it counts what the package counts that the vocabulary is from, and refuses a file that is none. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { countTokens } from 'gpt-tokenizer';
import { TokenTable } from '../../../src/http/money/token-table.ts';
import { Tokenizer } from '../../../src/http/money/tokenizer.ts';
import { createLogger } from '../../../src/http/operations/logger.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

/**
 * Letters that occur side by side. Without lone surrogates and byte-order marks, which the package reads as other bytes than were
 * sent.
 */
const SCRIPTS = [
  "the quick brown fox don't WE'LL they've Shouldn't\n",
  'äöüßéèñ çœ Straße ',
  '世界你好，我是。的一不了 ',
  'мир привет как ',
  '👩‍👩‍👧‍👦🇩🇪😀 ❤️e\u0301',
  '0123456789 .,/\\{"a":[1,2]}\r\n\t  <|endoftext|>\u0000',
  'العربية हिन्दी ไทย ',
];

const letters = fc.constantFrom(...SCRIPTS.flatMap((script) => [...script]));
/** Mostly of one script. Runs of 64 letters are cut before they are counted, so it is shorter. */
const texts = fc
  .constantFrom(...SCRIPTS)
  .chain((own) =>
    fc.array(fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...own) }, { weight: 1, arbitrary: letters }), { maxLength: 60 }),
  )
  .map((drawn) => drawn.join(''));

test('texts of any script are as many tokens as the package says, tokens of control as what they are spelled with', async () => {
  const tokenizer = new Tokenizer(createFakeClock(), createLogger('silent', { write: () => undefined }));
  await tokenizer.firstTry;
  const check = async (text: string) =>
    assert.equal(await tokenizer.count(text), countTokens(text, { disallowedSpecial: new Set() }), JSON.stringify(text));
  await fc.assert(fc.asyncProperty(texts, check), { numRuns: 500 });
  await check('Water finds its way: down the slope, around each stone, 1,024 times in the end. '.repeat(50));
});

const line = (token: string, rank: number): string => `${Buffer.from(token).toString('base64')} ${rank}\n`;
const table = (...tokens: string[]): TokenTable => new TokenTable(Buffer.from(tokens.map(line).join('')));

test('the pair of the lowest rank becomes one first; of equal ones that which stands in front', () => {
  const letters = table('a', 'b', 'c', 'bc', 'ab', 'aa', 'abc');
  assert.equal(letters.count('abc'), 1, 'a token as it is');
  assert.equal(letters.count('abcc'), 2, 'a + bc + c, then abc + c');
  assert.equal(letters.count('aab'), 2);
  assert.equal(letters.count('aaaa'), 2);
  assert.equal(table('a', 'b', 'c', 'ab', 'bc').count('abc'), 2, 'ab + c');
  assert.equal(letters.count('a'.repeat(2001)), 1001, 'longer than the buffer');
  assert.equal(letters.count(''), 0);
  assert.equal(letters.count('zz'), 2, 'bytes that are no token count as one each');
});

test('a file that was cut, or lacks a rank, is refused', () => {
  const whole = line('a', 0) + line('b', 1);
  assert.throws(() => new TokenTable(Buffer.from(whole.slice(0, -1))), /end inside a line/);
  assert.throws(() => new TokenTable(Buffer.from(line('a', 0) + line('b', 2))), /have a gap/);
});
