/** Who speaks while items are open side by side. How clients read it: `turns.property.test.ts` beside this folder. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Holds, OWN_KIND, Turns } from '../../../src/codecs/answers/turns.ts';
import type { ItemEvent, ItemHead } from '../../../src/codecs/canonical/event.ts';

const CALL: ItemHead = { kind: 'toolCall', toolType: 'function', callId: 'c', tool: { name: 'f' } };
const TEXT: ItemHead = { kind: 'text', role: 'assistant' };

/**
 * Events in short: `0 call`, `0 text` and `0 thought` begin an item, `0 end` ends it, anything else is a piece of it. Returns
 * what was said by each of them.
 */
function said(holds: Holds, begin: 'start' | 'delta', ...events: readonly string[]): string[] {
  const kinds = new Map<number, ItemHead>();
  const out: string[] = [];
  let now: string[] = [];
  const turns = new Turns(holds, begin, (event) => now.push(shortOf(event)));
  for (const short of events) {
    now = [];
    turns.push(eventOf(short, kinds));
    out.push(now.join(', '));
  }
  out.push(turns.rest().map(shortOf).join(', '));
  return out;
}

function eventOf(short: string, kinds: Map<number, ItemHead>): ItemEvent {
  const [, digits, word = ''] = /^(\d+) (.*)$/.exec(short) ?? [];
  const index = Number(digits);
  const head = { call: CALL, text: TEXT, thought: { kind: 'reasoning' } as const }[word];
  if (head !== undefined) {
    kinds.set(index, head);
    return { type: 'item.start', index, head };
  }
  const kind = kinds.get(index)?.kind;
  if (word === 'end') return { type: 'item.end', index, item: { kind: 'refusal', text: '' }, status: 'completed' };
  if (kind === 'toolCall') return { type: 'item.delta', index, delta: { kind: 'input', text: word } };
  if (kind === 'text') return { type: 'item.delta', index, delta: { kind: 'text', text: word } };
  return { type: 'item.delta', index, delta: { kind: 'summary', part: Number(word[0]), text: word } };
}

function shortOf(event: ItemEvent): string {
  if (event.type === 'item.start') return `${event.index} start`;
  if (event.type === 'item.end') return `${event.index} end`;
  return `${event.index} ${'text' in event.delta ? event.delta.text : ''}`;
}

test('what runs is live; what waits for it follows at its end, its pieces as one, and so does what began behind', () => {
  const calls: Holds = { toolCall: ['toolCall'] };
  assert.deepEqual(said(calls, 'start', '0 call', '1 call', '1 x', '2 text', '0 a', '1 y', '2 t', '0 end', '1 z', '1 end'), [
    '0 start',
    '',
    '',
    '',
    '0 a',
    '',
    '',
    '0 end, 1 start, 1 xy',
    '1 z',
    '1 end, 2 start, 2 t',
    '',
  ]);
});

test('an item that began before goes on beside what does not keep it waiting', () => {
  const calls: Holds = { toolCall: ['toolCall'] };
  assert.deepEqual(said(calls, 'start', '0 text', '1 call', '0 a', '1 x', '2 call', '0 b', '0 end').slice(1), [
    '1 start',
    '0 a',
    '1 x',
    '',
    '0 b',
    '0 end',
    '2 start',
  ]);
});

test('an item that is interrupted goes on before the next in line begins', () => {
  const all: Holds = { toolCall: ['text', 'toolCall'] };
  assert.deepEqual(said(all, 'start', '0 text', '0 a', '1 call', '2 call', '0 b', '1 end', '2 x').slice(2), [
    '1 start',
    '',
    '',
    '1 end, 0 b, 2 start',
    '2 x',
    '',
  ]);
});

test('the end of an interrupted item lets those speak who wait for it', () => {
  const holds: Holds = { ...OWN_KIND, toolCall: ['text', 'toolCall'] };
  assert.deepEqual(said(holds, 'start', '0 text', '0 a', '1 call', '2 text', '2 c', '0 b', '0 end', '1 end').slice(2), [
    '1 start',
    '',
    '',
    '',
    '',
    '1 end, 0 b, 0 end, 2 start, 2 c',
    '',
  ]);
});

test('a text may take its turn with its first word, and is overtaken until then', () => {
  const calls: Holds = { toolCall: ['toolCall'] };
  const events = ['0 call', '1 text', '2 call', '1 a', '0 end'];
  assert.deepEqual(said(calls, 'delta', ...events), ['0 start', '1 start', '', '', '0 end, 2 start', '1 a']);
  assert.deepEqual(said(calls, 'start', ...events), ['0 start', '1 start', '', '1 a', '0 end, 2 start', '']);
});

test('parts of a summary stay apart while they wait, and what never had its turn is the rest', () => {
  const events = ['0 thought', '1 thought', '1 0a', '1 0b', '1 1c', '2 text', '2 t'];
  assert.deepEqual(said(OWN_KIND, 'start', ...events).at(-1), '1 start, 1 0a0b, 1 1c, 2 start, 2 t');
});

test('what waits is one text, also where it came as a run: no pieces of its beginning stand in for the whole', () => {
  const written: ItemEvent[] = [];
  const turns = new Turns({ toolCall: ['toolCall'] }, 'start', (event) => written.push(event));
  const run = (...pieces: readonly string[]): ItemEvent => {
    return { type: 'item.delta', index: 1, delta: { kind: 'input', text: pieces.join(''), pieces } };
  };
  const events = ['0 call', '1 call', run('a', 'b'), run('c', 'd'), '1 e', '0 end'];
  const kinds = new Map<number, ItemHead>();
  for (const event of events) turns.push(typeof event === 'string' ? eventOf(event, kinds) : event);
  assert.deepEqual(written.slice(2), [
    { type: 'item.start', index: 1, head: CALL },
    { type: 'item.delta', index: 1, delta: { kind: 'input', text: 'abcde' } },
  ]);
});

test('many items that wait, and many pieces, cost what they say', () => {
  const calls = Array.from({ length: 20_000 }, (_, at) => at);
  const begun = calls.flatMap((at) => [`${at} call`, `${at} x`]);
  const all = said({ toolCall: ['toolCall'] }, 'start', ...begun, ...calls.map((at) => `${at} end`)).filter((now) => now !== '');
  assert.equal(all.join(', '), calls.map((at) => `${at} start, ${at} x, ${at} end`).join(', '));
});
