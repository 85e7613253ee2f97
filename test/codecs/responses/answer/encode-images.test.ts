/** Pictures as calls of the image tool: what kind of picture it is survives, said or not. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fold } from '../../../../src/codecs/canonical/fold.ts';
import { responsesClient, responsesUpstream } from '../../../../src/codecs/responses/index.ts';
import { eventsOf } from '../../../support/arbitraries/response.ts';
import { decodeContext, ownerOf, responseContext } from '../../../support/wire.ts';

const JPEG = '/9j/4AAQSkZJRgABAQEAYABgAAD/2wBDAA==';
const PNG = 'iVBORw0KGgoAAAANSUhEUg==';
const owner = ownerOf(responsesUpstream);

function said(mime: string, data: string): Record<string, unknown> {
  const item = { kind: 'media', role: 'assistant', media: { type: 'image', source: { from: 'inline', mime, data } } } as const;
  const whole = fold(eventsOf({ items: [item], usage: undefined, outcome: { status: 'completed', stop: 'end' } }));
  return JSON.parse(responsesClient.encodeResponse(whole, undefined, responseContext(responsesClient, owner))).output[0];
}

function read(item: object): string | undefined {
  const body = JSON.stringify({ id: 'resp_1', object: 'response', status: 'completed', output: [item] });
  const [first] = fold(responsesUpstream.decodeResponse(body, decodeContext(owner)).events).items;
  return first?.item.kind === 'media' && first.item.media.source.from === 'inline' ? first.item.media.source.mime : undefined;
}

test('a picture of another protocol names its format where it is not what clients take it for', () => {
  assert.equal(said('image/jpeg', JPEG)['output_format'], 'jpeg');
  assert.equal(said('image/webp', 'UklGRg==')['output_format'], 'webp');
  assert.equal('output_format' in said('image/png', PNG), false);
});

test('a picture whose format nobody names is what its first bytes are', () => {
  const call = { type: 'image_generation_call', id: 'ig_1', status: 'completed' };
  assert.equal(read({ ...call, result: JPEG }), 'image/jpeg');
  assert.equal(read({ ...call, result: PNG }), 'image/png');
  assert.equal(read({ ...call, result: 'AAAA' }), 'image/png');
  assert.equal(read({ ...call, result: PNG, output_format: 'webp' }), 'image/webp');
});
