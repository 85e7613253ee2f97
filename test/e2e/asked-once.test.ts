/**
 * How often an upstream is asked when it refuses: the official SDKs with the retries that they have by default, over HTTP and
 * WebSocket and every upstream. A mistake is one request, whatever the client; a limit is one more after the time that the
 * upstream named.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { ResponsesWS } from 'openai/resources/responses/ws';
import type { Fault } from '../../src/simulator/script.ts';
import { KEY, type TestGateway, testGateway } from '../support/test-gateway.ts';
import { formsConfig, startVendors, upstreamForms } from '../support/upstream-forms.ts';

const FORMS = upstreamForms(import.meta.filename);

/** What the client was told; `ok` where it had its answer. */
interface Told {
  readonly status: number | 'ok';
  readonly message: string;
  readonly retryAfter: string | undefined;
}
type Ask = (gateway: TestGateway, model: string) => Promise<Told>;

async function told(asked: Promise<unknown>): Promise<Told> {
  try {
    await asked;
    return { status: 'ok', message: '', retryAfter: undefined };
  } catch (thrown) {
    if (!(thrown instanceof OpenAI.APIError || thrown instanceof Anthropic.APIError)) throw thrown;
    const { status, message, headers } = thrown;
    return { status: status ?? 0, message, retryAfter: headers?.get('retry-after') ?? undefined };
  }
}

const openai = ({ url }: TestGateway) => new OpenAI({ apiKey: KEY, baseURL: `${url}/v1` });
const anthropic = ({ url }: TestGateway) => new Anthropic({ apiKey: KEY, baseURL: url });
const messages = [{ role: 'user' as const, content: 'hi' }];

const SDKS: Readonly<Record<string, Ask>> = {
  'chat.completions, whole': (gateway, model) => told(openai(gateway).chat.completions.create({ model, messages })),
  'chat.completions, streamed': (gateway, model) => told(openai(gateway).chat.completions.stream({ model, messages }).done()),
  'responses, whole': (gateway, model) => told(openai(gateway).responses.create({ model, input: 'hi' })),
  'responses, streamed': (gateway, model) => told(openai(gateway).responses.stream({ model, input: 'hi' }).done()),
  'messages, whole': (gateway, model) => told(anthropic(gateway).messages.create({ model, max_tokens: 9, messages })),
  'messages, streamed': (gateway, model) => told(anthropic(gateway).messages.stream({ model, max_tokens: 9, messages }).done()),
  'responses over WebSocket': (gateway, model) =>
    new Promise((resolve) => {
      const socket = new ResponsesWS(openai(gateway));
      const end = (said: Told) => {
        socket.close();
        resolve(said);
      };
      socket.on('error', ({ message, error }) => {
        // The SDK's type of the event leaves these two out.
        const { status, headers }: { status: number; headers?: Record<string, string> } = JSON.parse(JSON.stringify(error));
        end({ status, message, retryAfter: headers?.['retry-after'] });
      });
      socket.on('response.completed', () => end({ status: 'ok', message: '', retryAfter: undefined }));
      socket.send({ type: 'response.create', model, input: 'hi' });
    }),
};

/** An upstream that refuses so often, and a gateway of its own: circuits remember. */
async function refusing(t: TestContext, fault: Fault, times: number) {
  const simulator = await startVendors({ pace: { cut: 'packet' } });
  t.after(() => simulator.close());
  simulator.enqueue({ times, faults: [fault] });
  const gateway = await testGateway(formsConfig(FORMS, simulator.url));
  t.after(() => gateway[Symbol.asyncDispose]());
  return { simulator, gateway };
}

for (const { name: model, cloud } of FORMS) {
  test(`a mistake is one request to ${model}, and the client hears what it was`, async (t) => {
    // Bedrock has an exception for each status, and none for 422.
    for (const status of cloud?.platform === 'bedrock' ? [400] : [400, 422]) {
      const message = 'This turn is refused.';
      const { simulator, gateway } = await refusing(t, { type: 'status', status, message }, 100);
      for (const [sdk, ask] of Object.entries(SDKS)) {
        const before = simulator.requests.length;
        const { status: heard, message: said } = await ask(gateway, model);
        assert.equal(simulator.requests.length - before, 1, `${sdk}: ${said}`);
        assert.equal(heard, status, sdk);
        assert.match(said, /This turn is refused\./, sdk);
      }
    }
  });
}

const LIMIT: Fault = { type: 'status', status: 429, message: 'Slow down.', headers: { 'retry-after': '1' } };

test('one 429 with a short time is waited for: no client hears of it, and the upstream is asked twice', async (t) => {
  await Promise.all(
    Object.entries(SDKS).map(async ([sdk, ask], index) => {
      const { simulator, gateway } = await refusing(t, LIMIT, 1);
      const { status } = await ask(gateway, FORMS[index % FORMS.length]?.name ?? '');
      assert.equal(status, 'ok', sdk);
      assert.deepEqual([simulator.requests.length, gateway.store.settled.length], [2, 1], sdk);
    }),
  );
});

/** The SDKs ask three times by themselves; to each of those the gateway adds its one wait, and no more. */
test('a limit that stays is a 502 with the time of the upstream, and costs it two requests for each of the client’s', async (t) => {
  await Promise.all(
    Object.entries(SDKS).map(async ([sdk, ask], index) => {
      const { simulator, gateway } = await refusing(t, LIMIT, 100);
      const { status, retryAfter } = await ask(gateway, FORMS[index % FORMS.length]?.name ?? '');
      assert.deepEqual([status, retryAfter], [502, '1'], sdk);
      const asked = sdk.endsWith('WebSocket') ? 1 : 3;
      assert.deepEqual([gateway.store.settled.length, simulator.requests.length], [asked, 2 * asked], sdk);
    }),
  );
});
