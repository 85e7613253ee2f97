import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import { logprobsOf, readLogprobs, runSpelling, writeLogprobs } from '../../../src/codecs/answers/logprobs.ts';

const entry = (token: string, bytes: number[] | null = null) => ({ token, logprob: -0.5, bytes, top_logprobs: [] });

describe('logprobs', () => {
  it('come back as they were read', () => {
    const wire = [
      { token: 'a', logprob: -1.5, bytes: [97], top_logprobs: [{ token: 'b', logprob: -2, bytes: null }] },
      entry('c'),
    ];
    const read = readLogprobs(wire);
    assert.deepEqual(read && writeLogprobs(read), wire);
  });
  it('are read with their bytes in base64 (Novita)', () => {
    const wire = [{ token: 'é', logprob: -1, bytes: 'w6k=', top_logprobs: [{ token: '', logprob: -2, bytes: '' }] }];
    assert.deepEqual(readLogprobs(wire), [
      { token: 'é', logprob: -1, bytes: [195, 169], top: [{ token: '', logprob: -2, bytes: [] }] },
    ]);
  });
  it('are absent for null, absent and empty', () => {
    for (const value of [undefined, null, []]) assert.equal(readLogprobs(value), undefined);
  });
  for (const value of [
    'x',
    [1],
    [{ token: 1, logprob: 1 }],
    [{ token: 'a' }],
    [{ ...entry('a'), bytes: [256] }],
    [{ ...entry('a'), bytes: '%' }],
    [{ ...entry('a'), top_logprobs: {} }],
  ]) {
    it(`refuses ${JSON.stringify(value)}`, () => {
      assert.throws(
        () => readLogprobs(value),
        (error) => error instanceof GatewayError && error.details.reason === 'malformed_event',
      );
    });
  }
  it('stay with their text only', () => {
    const tokens = [entry('He'), entry('llo')];
    assert.equal(logprobsOf('Hello', tokens), tokens);
    assert.equal(logprobsOf('Hello!', tokens), undefined);
    assert.equal(logprobsOf('', []), undefined);
  });
  it('are found between what a model thought and its mark of the end (vLLM)', () => {
    const said = [entry('Hi'), entry(' é')];
    assert.deepEqual(runSpelling('Hi é', [entry('Hi'), entry('</think>'), ...said, entry('<|im_end|>')]), said);
    assert.deepEqual(runSpelling('Hi é', said), said);
    for (const other of [[], [entry('Hi é!')], [entry('x'), entry('Hi')]]) assert.equal(runSpelling('Hi é', other), undefined);
  });
  it('add up by bytes where a token is a piece of a character', () => {
    const [a, b, c, d] = [...Buffer.from('😀')];
    const tokens = [entry('\\xf0\\x9f', [a ?? 0, b ?? 0]), entry('\\x98\\x80', [c ?? 0, d ?? 0])];
    assert.equal(logprobsOf('😀', tokens), tokens);
    assert.equal(logprobsOf('😁', tokens), undefined);
  });
});
