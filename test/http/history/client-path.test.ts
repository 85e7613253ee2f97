/** Where a mistake stands, as the client knows it: its own input is only the end of what was read. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import { atClientPath, type OwnInput } from '../../../src/http/history/client-path.ts';

const LIST: OwnInput = { itemsBefore: 3, isText: false };
const TEXT: OwnInput = { itemsBefore: 3, isText: true };
const at = (param: string): GatewayError =>
  new GatewayError('invalid_request', `${param} is wrong; see ${param}.`, { param, status: 422 });

function told(param: string, own: OwnInput): readonly [param: string | null, message: string] {
  const error = atClientPath(at(param), own);
  assert.ok(error instanceof GatewayError);
  assert.deepEqual([error.code, error.status], ['invalid_request', 422], 'everything else stays');
  return [error.param, error.message];
}

test('an item of the client’s own input has the number that the client gave it, in the message too', () => {
  assert.deepEqual(told('input[3]', LIST), ['input[0]', 'input[0] is wrong; see input[0].']);
  assert.deepEqual(told('input[14].content[0].text', LIST)[0], 'input[11].content[0].text');
  assert.deepEqual(told('input[3].\nodd', LIST)[0], 'input[0].\nodd', 'whatever stands behind the number');
});

test('an input that was one text has no items, and one of the history is what was continued', () => {
  assert.deepEqual(told('input[3].content', TEXT), ['input', 'input is wrong; see input.']);
  for (const own of [LIST, TEXT]) assert.equal(told('input[2].content', own)[0], 'previous_response_id');
});

test('other paths, other errors and requests without a history are told as they are', () => {
  for (const param of ['model', 'tools[3]', 'input', 'my.input[3]']) {
    const error = at(param);
    assert.equal(atClientPath(error, LIST), error);
  }
  const elsewhere = at('input[3]');
  assert.equal(atClientPath(elsewhere, undefined), elsewhere);
  const nowhere = new GatewayError('invalid_request', 'input[3]');
  assert.equal(atClientPath(nowhere, LIST), nowhere);
  const other = new Error('input[3]');
  assert.equal(atClientPath(other, LIST), other);
});
