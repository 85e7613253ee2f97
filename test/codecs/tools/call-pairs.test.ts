import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Item } from '../../../src/codecs/canonical/item.ts';
import { whole } from '../../../src/codecs/steps.ts';
import { withAnsweredCalls as inSteps } from '../../../src/codecs/tools/call-pairs.ts';

const withAnsweredCalls = whole(inSteps);

const user = (text: string): Item => ({ kind: 'text', role: 'user', text, citations: [] });
const said = (text: string): Item => ({ kind: 'text', role: 'assistant', text, citations: [] });
const thought = (text: string): Item => ({ kind: 'reasoning', raw: text });
const call = (callId: string): Item => ({ kind: 'toolCall', toolType: 'function', callId, tool: { name: 'f' }, input: '{}' });
const result = (callId: string, text = `of ${callId}`): Item => ({
  kind: 'toolResult',
  toolType: 'function',
  callId,
  content: [{ kind: 'text', text }],
  isError: false,
});

/** A short spelling of items: what they are, in order. */
function settled(...items: Item[]): { readonly items: string[]; readonly lost: string[] } {
  const lost: string[] = [];
  const kept = withAnsweredCalls(items, (feature) => lost.push(feature));
  return { items: kept.map(spell), lost };
}

function spell(item: Item): string {
  switch (item.kind) {
    case 'text':
      return item.text;
    case 'toolCall':
      return `call ${item.callId}`;
    case 'toolResult':
      return item.content.map((part) => (part.kind === 'text' ? part.text : part.kind)).join();
    default:
      return item.kind;
  }
}

test('a history in order stays as it is', () => {
  const { items, lost } = settled(user('q'), said('a'), call('1'), call('2'), result('2'), result('1'), said('b'));
  assert.deepEqual(items, ['q', 'a', 'call 1', 'call 2', 'of 2', 'of 1', 'b']);
  assert.deepEqual(lost, []);
});

test('results come back to the turn of their calls, whatever stood between, before or behind', () => {
  assert.deepEqual(settled(call('1'), said('after'), user('wait'), result('1')).items, ['call 1', 'after', 'of 1', 'wait']);
  assert.deepEqual(settled(result('1'), user('q'), call('1'), user('r')).items, ['q', 'call 1', 'of 1', 'r']);
  assert.deepEqual(settled(call('1'), result('1'), call('2'), result('2')).items, ['call 1', 'of 1', 'call 2', 'of 2']);
});

test('what the model said beside its calls, in an item of its own, stays before their results', () => {
  const at = (turn: number, item: Item): Item => ({ ...item, turn });
  const items = [
    at(1, user('q')),
    at(2, call('1')),
    at(3, said('look')),
    at(4, call('2')),
    at(5, result('2')),
    at(6, result('1')),
  ];
  assert.deepEqual(settled(...items).items, ['q', 'call 1', 'look', 'call 2', 'of 2', 'of 1']);
  const thinks = [at(1, call('1')), at(2, thought('t')), at(3, call('2')), at(4, result('1')), at(5, result('2'))];
  assert.deepEqual(settled(...thinks).items, ['call 1', 'reasoning', 'call 2', 'of 1', 'of 2'], 'one interleaved answer');
  const steps = [at(1, call('1')), at(2, result('1')), at(3, thought('t')), at(4, call('2')), at(5, result('2'))];
  assert.deepEqual(settled(...steps).items, ['call 1', 'of 1', 'reasoning', 'call 2', 'of 2'], 'two answers');
});

test('M10: a repeated result counts once, the last payload at the first position', () => {
  const { items, lost } = settled(call('1'), call('2'), result('1', 'stale'), result('2'), result('1', 'fresh'), user('go'));
  assert.deepEqual(items, ['call 1', 'call 2', 'fresh', 'of 2', 'go']);
  assert.deepEqual(lost, []);
});

test('a call without a result and a result without a call go, and reasoning that led to the call alone goes along', () => {
  const { items, lost } = settled(user('q'), thought('t'), call('1'), user('never mind'), result('9'), said('ok'));
  assert.deepEqual(items, ['q', 'never mind', 'ok']);
  assert.deepEqual(lost, ['function call without a result', 'tool result without a call']);
  assert.deepEqual(settled(thought('t'), said('a'), call('1'), user('q')).items, ['reasoning', 'a', 'q']);
});

test('calls of one answer that share an id are answered in order, each under an id of its own', () => {
  const named = settled(
    user('q'),
    call('f'),
    call('f'),
    call('g'),
    result('f', 'one'),
    result('g'),
    result('f', 'two'),
    user('r'),
  );
  assert.deepEqual(named.items, ['q', 'call f', 'call f_2', 'call g', 'one', 'of g', 'two', 'r']);
  assert.deepEqual(named.lost, []);
  const kept = withAnsweredCalls(
    [call('f'), call('f'), call('f_2'), result('f', 'a'), result('f', 'b'), result('f_2', 'c')],
    () => assert.fail('nothing is lost'),
  );
  const ids = kept.flatMap((item) => (item.kind === 'toolCall' || item.kind === 'toolResult' ? [item.callId] : []));
  assert.deepEqual(ids, ['f', 'f_3', 'f_2', 'f', 'f_3', 'f_2']);
  assert.deepEqual(settled(call('f'), call('f'), result('f', 'last'), user('q')).items, ['call f', 'last', 'q']);
  const again = settled(call('f'), call('f'), result('f', 'a'), result('f', 'stale'), result('f', 'b'), user('q'));
  assert.deepEqual(again.items, ['call f', 'call f_2', 'a', 'b', 'q']);
});

test('T9: of two calls with one id the one that has the output stays', () => {
  assert.deepEqual(settled(call('1'), user('q'), call('1'), result('1')).items, ['q', 'call 1', 'of 1']);
});

test('T9: calls of one turn that share an id each keep their result, under ids of their own', () => {
  const twice = (...answers: Item[]) => settled(user('q'), call('1'), call('1'), ...answers, said('a'));
  assert.deepEqual(twice(result('1', 'one'), result('1', 'two')), {
    items: ['q', 'call 1', 'call 1_2', 'one', 'two', 'a'],
    lost: [],
  });
  assert.deepEqual(twice(result('1', 'one'), result('1', 'stale'), result('1', 'two')).items.slice(3), ['one', 'two', 'a']);
  assert.deepEqual(twice(result('1', 'one')).lost, ['function call without a result']);
  const kept = withAnsweredCalls([call('1'), call('1'), result('1'), result('1')], () => assert.fail('nothing is lost'));
  assert.deepEqual(
    kept.map((item) => (item.kind === 'toolResult' ? item.callId : undefined)),
    [undefined, undefined, '1', '1_2'],
  );
  const turns = [call('1'), result('1', 'first'), user('q'), call('1'), result('1', 'second')];
  assert.deepEqual(settled(...turns).items, ['call 1', 'first', 'q', 'call 1', 'second'], 'ids that are new in each turn');
});

test('calls of a turn that nothing follows wait for their results', () => {
  assert.deepEqual(settled(user('q'), thought('t'), call('1')).items, ['q', 'reasoning', 'call 1']);
  assert.deepEqual(settled(call('1'), result('1'), call('2')).items, ['call 1', 'of 1', 'call 2']);
});

test('many calls of one turn under one id take linear time', () => {
  const calls = Array.from({ length: 50_000 }, () => call('f'));
  const items = [user('q'), ...calls, ...calls.map(() => result('f')), said('a')];
  const kept = withAnsweredCalls(items, () => assert.fail('nothing is lost'));
  assert.equal(new Set(kept.flatMap((item) => (item.kind === 'toolCall' ? [item.callId] : []))).size, calls.length);
});

test('a turn with more calls than a call takes arguments', () => {
  const ids = Array.from({ length: 130_000 }, (_, index) => String(index));
  const items = [user('q'), ...ids.map(call), ...ids.map((id) => result(id)), said('a')];
  assert.equal(withAnsweredCalls(items, () => assert.fail('nothing is lost')).length, items.length);
});
