/** Ledger section 9, as far as decoding decides it. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { totalInput } from '../../src/codecs/canonical/usage.ts';
import { block, delta, DONE, finish, messageEnd, messageStart, say, through, usageChunk } from './through.ts';

const text = block(0, { type: 'text', text: '' }, say('x'));

describe('usage', () => {
  test('U1: cache tokens are counted once, whichever side includes them', () => {
    const usage = { input_tokens: 6, cache_creation_input_tokens: 159_217, cache_read_input_tokens: 10, output_tokens: 1 };
    const { whole, body } = through('messages', 'chat', [
      messageStart('m', usage),
      ...text,
      ...messageEnd('end_turn', { output_tokens: 2745 }),
    ]);
    assert.deepEqual([whole?.usage?.input, whole?.usage?.cacheRead], [6, 10]);
    assert.equal(whole?.usage === undefined ? 0 : totalInput(whole.usage), 159_233);
    assert.deepEqual([body.usage.prompt_tokens, body.usage.prompt_tokens_details.cached_tokens], [159_233, 10]);
    const chunk = {
      ...(usageChunk(100, 5) as object),
      usage: { prompt_tokens: 100, completion_tokens: 5, total_tokens: 105, prompt_tokens_details: { cached_tokens: 40 } },
    };
    const back = through('chat', 'messages', [delta({ content: 'x' }), finish('stop'), chunk, DONE]);
    assert.deepEqual([back.body.usage.input_tokens, back.body.usage.cache_read_input_tokens], [60, 40]);
  });

  test('U2: null usage on every chunk until the last is no usage', () => {
    const chunk = (members: object): object => ({ ...(delta(members) as object), usage: null });
    const { whole } = through('chat', 'chat', [chunk({ content: 'x' }), finish('stop'), usageChunk(7, 2), DONE]);
    assert.deepEqual([whole?.usage?.input, whole?.usage?.output], [7, 2]);
    assert.equal(through('chat', 'chat', [chunk({ content: 'x' }), finish('stop'), DONE]).whole?.usage, undefined);
  });

  test('U4: the last value of a field wins, start and delta are never summed', () => {
    const end = messageEnd('end_turn', { input_tokens: 9, output_tokens: 5 });
    const { whole } = through('messages', 'messages', [
      messageStart('m', { input_tokens: 3, cache_read_input_tokens: 4, output_tokens: 1 }),
      ...text,
      ...end,
    ]);
    assert.deepEqual([whole?.usage?.input, whole?.usage?.cacheRead, whole?.usage?.output], [9, 4, 5]);
  });

  test('U5: usage that is not known at the start stands in message_delta', () => {
    const { events } = through('chat', 'messages', [delta({ content: 'x' }), finish('stop'), usageChunk(7, 2), DONE]);
    assert.equal(events[0].message.usage.input_tokens, 0);
    const end = events.find(({ type }) => type === 'message_delta');
    assert.deepEqual([end.usage.input_tokens, end.usage.output_tokens], [7, 2]);
  });

  test('U14: output includes reasoning, for a vendor that reports it beside', () => {
    const usage = {
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 35,
      completion_tokens_details: { reasoning_tokens: 20 },
    };
    const { whole } = through('chat', 'responses', [
      delta({ content: 'x' }),
      finish('stop'),
      { ...(usageChunk(0, 0) as object), usage },
      DONE,
    ]);
    assert.deepEqual([whole?.usage?.output, whole?.usage?.reasoning], [25, 20]);
  });

  test('U8: a negative, broken or immense count is no usage, and nothing of it reaches a client of another protocol', () => {
    for (const nonsense of ['-5', '1.5', '1e309', '"-7"', '9007199254740993', '"many"', 'true']) {
      const nothing = (value: string): object => JSON.parse(value.replaceAll('NONSENSE', nonsense)) as object;
      const chunk = { ...usageChunk(0, 0), ...nothing('{"usage":{"prompt_tokens":NONSENSE,"completion_tokens":NONSENSE}}') };
      const chat = through('chat', 'responses', [delta({ content: 'x' }), finish('stop'), chunk, DONE]);
      const counts = nothing('{"input_tokens":NONSENSE,"cache_read_input_tokens":NONSENSE,"output_tokens":NONSENSE}');
      const messages = through('messages', 'responses', [messageStart('m', counts), ...text, ...messageEnd('end_turn', counts)]);
      for (const { whole, body } of [chat, messages]) {
        const known = [whole?.usage?.input, whole?.usage?.cacheRead, whole?.usage?.output];
        assert.deepEqual(known, [undefined, undefined, undefined], nonsense);
        assert.equal(body.usage, null, nonsense);
      }
    }
  });

  test('U14: output includes the thinking of a messages upstream that counts it beside', () => {
    const end = messageEnd('end_turn', { output_tokens: 5, output_tokens_details: { thinking_tokens: 30 } });
    const { body, whole } = through('messages', 'chat', [messageStart(), ...text, ...end]);
    assert.deepEqual([whole?.usage?.output, whole?.usage?.reasoning], [35, 30]);
    assert.equal(body.usage.completion_tokens, 35);
  });

  test('U15: thinking tokens of a messages upstream are reasoning tokens', () => {
    const end = messageEnd('end_turn', { output_tokens: 50, output_tokens_details: { thinking_tokens: 30 } });
    const { body } = through('messages', 'chat', [messageStart(), ...text, ...end]);
    assert.equal(body.usage.completion_tokens_details.reasoning_tokens, 30);
  });
});
