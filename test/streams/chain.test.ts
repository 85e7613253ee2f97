import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chain, chainSealed } from '../../src/streams/chain.ts';
import { scripted } from '../support/scripted-stage.ts';

test('what the first said before it threw goes through the second, then the failure is thrown', () => {
  const fused = chain(scripted('1', [{ words: 2, next: 'throw' }]), scripted('2', []));
  const out: string[] = [];
  assert.throws(() => fused.push('a', out), /1 refuses a/);
  assert.deepEqual(out, ['2(1(a)#0)#0', '2(1(a)#1)#0']);
});

test("when the first's end throws, the second's end is not called", () => {
  const second = scripted('2', []);
  const fused = chain(scripted('1', [{ words: 1, next: 'throw' }]), second);
  const out: string[] = [];
  assert.throws(() => fused.end(out), /1 refuses eof/);
  assert.deepEqual(second.calls, ['push']);
  assert.deepEqual(out, ['2(1(eof)#0)#0']);
});

test('fail goes to the last stage only', () => {
  const first = scripted('1', []);
  const out: string[] = [];
  chainSealed(first, scripted('2', [])).fail('why', out);
  assert.deepEqual(out, ['2.FAIL(why)']);
  assert.deepEqual(first.calls, []);
});

test('once the last has ended, input, end and a late failure of the first are ignored', () => {
  const first = scripted('1', [{ words: 2, next: 'throw' }]);
  const fused = chain(first, scripted('2', [{ words: 1, next: 'end' }]));
  const out: string[] = [];
  fused.push('a', out);
  assert.equal(fused.ended, true);
  fused.push('b', out);
  fused.end(out);
  assert.deepEqual(out, ['2(1(a)#0)#0', '2.END']);
  assert.deepEqual(first.calls, ['push']);
});

test('when the first has ended, the second is told that its input ended', () => {
  const second = scripted('2', []);
  const fused = chain(scripted('1', [{ words: 1, next: 'end' }]), second);
  const out: string[] = [];
  fused.push('a', out);
  assert.equal(fused.ended, true);
  assert.deepEqual(second.calls, ['push', 'push', 'end']);
});

test('a second whose end throws leaves the chain open, so that its failure can still be said', () => {
  const fused = chainSealed(scripted('1', []), scripted('2', [{ words: 1, next: 'throw' }]));
  const out: string[] = [];
  assert.throws(() => fused.end(out), /2 refuses/);
  assert.equal(fused.ended, false);
  out.length = fused.kept ?? 0;
  fused.fail('why', out);
  assert.deepEqual(out, ['2.FAIL(why)']);
});

test('what a second said before its end threw is whole, and only the words of that end are half-written', () => {
  const goesOn = { words: 1, next: 'go on' } as const;
  const second = scripted('2', [goesOn, goesOn, { words: 1, next: 'throw' }]);
  const fused = chainSealed(scripted('1', [{ words: 1, next: 'end' }]), second);
  const out: string[] = [];
  assert.throws(() => fused.push('a', out), /2 refuses eof/);
  assert.deepEqual(out.slice(0, fused.kept), ['2(1(a)#0)#0', '2(1.END)#0']);
});
