/**
 * The built-in demonstration: the simulator as every upstream, a funded account, one known key. Its configuration goes through
 * the same parser as an operator's file.
 */
import { USD } from '../store/money.ts';
import type { Store } from '../store/store.ts';

const DEMO_KEY = 'sk-mizu-demo';
export const DEMO_STORE = '.mizu-demo';

const PRICE = { input: '1.00', cached_input: '0.10', output: '4.00' };

/** The configuration file of the demonstration, as text. */
export function demoConfig(upstreamUrl: string, storePath: string): string {
  const channel = (id: string, type: string, models: readonly string[], options: object = {}) => ({
    id,
    type,
    base_url: upstreamUrl,
    api_key: 'sk-simulated',
    models,
    options,
  });
  return JSON.stringify({
    store: { path: storePath },
    operations: null,
    channels: [
      channel('demo-chat', 'chat_completion', ['demo-chat', 'demo-embedding']),
      channel('demo-responses', 'responses', ['demo-responses'], { image_enable_openai_generation_tool: true }),
      channel('demo-messages', 'messages', ['demo-messages']),
      channel('demo-gemini', 'gemini', ['demo-gemini']),
      channel('demo-image', 'openai_image', ['demo-image']),
      channel('demo-image-router', 'openrouter_image', ['demo-image-router']),
      { ...channel('demo-video', 'ark_video', ['demo-video'], { poll_interval_ms: 500 }), base_url: `${upstreamUrl}/api/v3` },
    ],
    models: {
      'demo-chat': { price: PRICE },
      'demo-responses': { price: PRICE },
      'demo-messages': { price: PRICE },
      'demo-gemini': { price: PRICE },
      'demo-embedding': { kind: 'embedding', price: { input: '0.02' } },
      'demo-image': { kind: 'image', price: { input: '5.00', image_output: '40.00' } },
      'demo-image-router': { kind: 'image', price: { image: '0.04' } },
      'demo-video': { kind: 'video', price: { video: '0.50' } },
    },
  });
}

/** Creates the demonstration's account and key unless they exist. */
export async function fundDemo(store: Store): Promise<void> {
  const cause = (id: string) => ({ id: `demo-${id}`, by: 'demo' });
  let account = await store.accounts.find('demo');
  if (account === undefined) {
    const made = await store.accounts.create({ name: 'demo', creditNanos: 100n * USD }, cause('account'));
    if (!made.ok) throw new Error(`the demonstration's account was refused: ${made.refusal.reason}`);
    account = made.value;
  }
  if ((await store.keys.list(account.id)).length > 0) return;
  const key = await store.keys.create({ accountId: account.id, name: 'demo', secret: DEMO_KEY }, cause('key'));
  if (!key.ok) throw new Error(`the demonstration's key was refused: ${key.refusal.reason}`);
}

/** Where a gateway listens, as a URL. */
export function addressOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

export function demoGreeting(host: string, port: number): string {
  const url = addressOf(host, port);
  return [
    `Mizu listens on ${url} (demonstration: simulated upstreams, nothing leaves this machine).`,
    `Pages: ${url}/ (prices), ${url}/apidocs, ${url}/account (usage of a key). No operations port.`,
    'Models: demo-chat, demo-responses, demo-messages, demo-gemini, demo-embedding, demo-image, demo-image-router, demo-video.',
    `Key: ${DEMO_KEY}. Try:`,
    '',
    `  curl -N ${url}/v1/chat/completions -H 'Authorization: Bearer ${DEMO_KEY}' -H 'Content-Type: application/json' \\`,
    `    -d '{"model":"demo-messages","stream":true,"messages":[{"role":"user","content":"What is a gateway?"}]}'`,
    '',
    'A picture (also from demo-image-router and demo-responses), and a vector:',
    '',
    `  curl ${url}/v1/images/generations -H 'Authorization: Bearer ${DEMO_KEY}' -H 'Content-Type: application/json' \\`,
    `    -d '{"model":"demo-image","prompt":"a red door","size":"1024x1024"}' | grep -o 'iVBOR[^"]*' | base64 -d > door.png`,
    `  curl ${url}/v1/embeddings -H 'Authorization: Bearer ${DEMO_KEY}' -H 'Content-Type: application/json' \\`,
    `    -d '{"model":"demo-embedding","input":"a red door","dimensions":8}'`,
    '',
  ].join('\n');
}
