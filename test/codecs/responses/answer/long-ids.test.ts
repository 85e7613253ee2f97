/** An item whose id is so long that each event about it would be, too, is refused wherever it comes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../../src/codecs/canonical/error.ts';
import { codecs } from '../../../../src/codecs/registry.ts';
import { decodeBytes, decodeContext, ownerOf, sseText } from '../../../support/wire.ts';

const upstream = codecs.upstream('responses');
const usage = { input_tokens: 7, output_tokens: 5, total_tokens: 12 };
const message = (id: string) => ({
  ...{ type: 'message', id, role: 'assistant', status: 'completed' },
  content: [{ type: 'output_text', text: 'x', annotations: [] }],
});
const response = (id: string) => ({
  id: 'r',
  object: 'response',
  status: 'completed',
  model: 'up',
  output: [message(id)],
  usage,
});
const LONGEST = 'i'.repeat(4096);
const isRefused = (thrown: unknown): boolean =>
  thrown instanceof GatewayError && thrown.details.reason === 'malformed_event' && /id is longer than 4096/.test(thrown.message);

function streamed(...events: readonly { readonly type: string; readonly [member: string]: unknown }[]) {
  const bytes = Buffer.from(sseText(events.map((event) => ({ event: event.type, data: JSON.stringify(event) }))));
  return decodeBytes(upstream, [bytes]).failure;
}
const done = (id: string) => ({ type: 'response.output_item.done', output_index: 0, item: message(id) });
const added = (id: string) => ({ ...done(id), type: 'response.output_item.added' });
const created = { type: 'response.created', response: { ...response('x'), status: 'in_progress', output: [] } };
const completed = (id: string) => ({ type: 'response.completed', response: response(id) });

test('an id of 4,096 characters is read; a longer one is refused where an item begins, ends, is listed, and in a whole answer', () => {
  const read = (id: string) => () => upstream.decodeResponse(JSON.stringify(response(id)), decodeContext(ownerOf(upstream)));
  assert.doesNotThrow(read(LONGEST));
  assert.throws(read(`${LONGEST}i`), isRefused);
  assert.equal(streamed(created, done(LONGEST), completed(LONGEST)), undefined);
  const long = `${LONGEST}i`;
  for (const failure of [
    streamed(created, added(long), done(long), completed(long)),
    streamed(created, done(long), completed(long)),
    streamed(created, completed(long)),
  ])
    assert.ok(isRefused(failure), `${failure?.message}`);
});

test('a call whose id is its long call id, for want of another, is refused as well', () => {
  const call = { type: 'function_call', call_id: `${LONGEST}i`, name: 'f', arguments: '{}', status: 'completed' };
  assert.ok(isRefused(streamed(created, { type: 'response.output_item.added', item: call }, completed('x'))));
});
