/** An upstream's name of a model stays inside: clients read the name that they asked for, in whatever form the upstream fails. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../src/codecs/canonical/error.ts';
import { namesOtherModels, namingModel } from '../../src/codecs/errors/model-names.ts';
import { testGateway } from '../support/test-gateway.ts';
import { formChannel, formsConfig, startVendors, upstreamForms } from '../support/upstream-forms.ts';

const simulator = await startVendors();
test.after(() => simulator.close());

const FORMS = upstreamForms(import.meta.filename);
const WIRE = 'vendor-9.5-secret';
const config = {
  ...formsConfig(FORMS, simulator.url),
  channels: FORMS.map((form) => formChannel(form, simulator.url, { models: { [form.name]: WIRE } })),
};
const CLIENTS = {
  '/v1/chat/completions': { messages: [{ role: 'user', content: 'hi' }] },
  '/v1/responses': { input: 'hi' },
  '/v1/messages': { max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] },
} as const;

const message = `The model ${WIRE} failed; ${WIRE}-mini does not exist.`;

for (const { name: model, type } of FORMS) {
  for (const [path, ask] of Object.entries(CLIENTS)) {
    test(`${path} over ${model}: an error of the upstream names the model as the client does`, async () => {
      await using gateway = await testGateway(config);
      const error =
        type === 'gemini' ? { code: 400, message, status: 'INVALID_ARGUMENT' } : { message, type: 'invalid_request_error' };
      const said = `The model ${model} failed; ${WIRE}-mini does not exist.`;
      simulator.enqueue({ faults: [{ type: 'status', status: 400, body: { type: 'error', error } }] });
      const refused = await gateway.post(path, { model, ...ask });
      assert.equal(refused.status, 400);
      assert.ok((await refused.text()).includes(said));
      const reply = { pieces: [{ type: 'text' as const, text: 'Good morning to you, and a good day' }] };
      const event = type === 'messages' || type === 'responses' ? error : { error };
      simulator.enqueue({ reply, faults: [{ type: 'error-event', at: 3, error: event }] });
      const text = await (await gateway.post(path, { model, ...ask, stream: true })).text();
      assert.ok(text.includes(said), text);
    });
  }
}

test('only the whole name is replaced, as often as it stands there', () => {
  const named = (text: string, wire: string): string =>
    namingModel(new GatewayError('upstream_error', text), wire, '$& mine').message;
  assert.equal(named('gpt-4 is down. Use gpt-4-turbo or gpt-4.', 'gpt-4'), '$& mine is down. Use gpt-4-turbo or $& mine.');
  assert.equal(
    named('`models/g-2.5-pro` is no g-2.5-pro.1 or my-g-2.5-pro', 'g-2.5-pro'),
    '`models/$& mine` is no g-2.5-pro.1 or my-g-2.5-pro',
  );
  assert.equal(named('a+b (c) is not a+b', 'a+b'), '$& mine (c) is not $& mine');
  const error = new GatewayError('upstream_error', 'nothing of it', { retryAfterMs: 5 });
  assert.equal(namingModel(error, 'x-1', 'y'), error);
  assert.equal(namingModel(new GatewayError('upstream_error', 'x-1', { retryAfterMs: 5 }), 'x-1', 'y').details.retryAfterMs, 5);
});

test('an error of another model than the one that was asked: by the names that vendors quote, and in no other text', () => {
  const said = (status: number, text: string) => new GatewayError('upstream_error', 'No.', { upstream: { status, text } });
  const body = (message: string) => JSON.stringify({ error: { message, model: 'other' }, model: 'other' });
  const isOther = (text: string, status = 404) => namesOtherModels(said(status, body(text)), ['vendor/wire', 'logical']);
  for (const quoted of ['`other`', "'other'", '"other"', '`wire-2`', '`logical-2`', '`logical-mini`', '`x/wire/y`']) {
    assert.ok(isOther(`The model ${quoted} does not exist`), quoted);
    assert.ok(isOther(`You must be verified to use the model ${quoted}.`, 403), quoted);
    assert.ok(!isOther(`The model ${quoted} does not exist`, 400), quoted);
  }
  assert.ok(isOther('model: other'));
  const snapshots = ['`logical-2025-08-07`', '`logical-001`', '`logical@20250514`', "'logical-v1:0'"];
  for (const own of ['`logical`', '`vendor/wire`', "'wire'", '"logical"', ...snapshots])
    for (const text of [`The model ${own} does not exist`, `${own} and model 'other'. The model ${own}`])
      assert.ok(!isOther(text), text);
  for (const none of [
    'model: logical',
    'model: logical. Try another.',
    'Not found',
    'The model does not exist',
    'models/other is not found',
    "the models 'a'",
  ])
    assert.ok(!isOther(none), none);
  const path = 'Publisher Model `projects/p/locations/l/publishers/google/models/logical` was not found';
  assert.ok(!isOther(path));
});
