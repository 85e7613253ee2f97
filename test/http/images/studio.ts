/** A gateway in front of the simulated upstream, with one model for each kind of image route. */
import OpenAI, { toFile } from 'openai';
import { makePng } from '../../../src/simulator/png.ts';
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts';
import { KEY, type TestGateway, testGateway } from '../../support/test-gateway.ts';

export interface Studio extends AsyncDisposable {
  readonly sim: Simulator;
  readonly gateway: TestGateway;
  readonly client: OpenAI;
  /** A multipart POST of an edit. */
  form(parts: readonly (readonly [string, string | Blob, string?])[]): Promise<Response>;
}

const PRICE = { price: { input: '1', output: '2' } };

/** Models: `native`, `router`, `tool` (a responses Channel with the option), `closed` (one without it). */
export async function studio(changes: { readonly channels?: readonly object[]; readonly file?: object } = {}): Promise<Studio> {
  const sim = await startSimulator();
  const on = (id: string, type: string, options: object = {}, more: object = {}): object => ({
    id,
    type,
    base_url: sim.url,
    api_key: `sk-${id}`,
    models: { [id]: `up-${id}` },
    options,
    ...more,
  });
  const channels = [
    on('native', 'openai_image', {}, { file_scope: 'files' }),
    on('router', 'openrouter_image', {}, { base_url: `${sim.url}/api` }),
    on(
      'tool',
      'responses',
      { image_enable_openai_generation_tool: true, image_defaults: { quality: 'low', size: '64x64' } },
      { file_scope: 'files' },
    ),
    on('closed', 'responses'),
    on('vectors', 'chat_completion'),
    on('numbers', 'responses'),
    on('text', 'chat_completion'),
    ...(changes.channels ?? []),
  ];
  const gateway = await testGateway({
    channels,
    health: { failures: 1000 },
    models: {
      native: { kind: 'image', ...PRICE },
      router: { kind: 'image', ...PRICE },
      tool: { kind: 'image', ...PRICE },
      closed: { kind: 'image', ...PRICE },
      vectors: { kind: 'embedding', ...PRICE },
      numbers: { kind: 'embedding', ...PRICE },
      text: PRICE,
    },
    ...changes.file,
  });
  return {
    sim,
    gateway,
    client: new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: KEY, maxRetries: 0 }),
    form(parts) {
      const body = new FormData();
      for (const [name, value, filename] of parts) {
        if (typeof value === 'string') body.append(name, value);
        else body.append(name, value, filename ?? 'a.png');
      }
      return fetch(`${gateway.url}/v1/images/edits`, { method: 'POST', headers: { authorization: `Bearer ${KEY}` }, body });
    },
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await sim.close();
    },
  };
}

export const png = (width = 40, height = 30, alpha = false, seed = 9): Buffer => makePng({ width, height }, seed, alpha);
export const file = (bytes: Buffer = png(), name = 'a.png') => toFile(bytes, name, { type: 'image/png' });
export const blob = (bytes: Buffer = png(), type = 'image/png'): Blob => new Blob([Uint8Array.from(bytes)], { type });
export const dataUrl = (bytes: Buffer = png()): string => `data:image/png;base64,${bytes.toString('base64')}`;

/** The JSON body of the upstream's `index`th request. */
export function sentBody(sim: Simulator, index = 0): Record<string, unknown> {
  const body = sim.requests[index]?.body;
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw new Error(`request ${index} has no JSON object`);
  return { ...body };
}

export interface SseEvent {
  readonly event: string | undefined;
  readonly data: string;
}

/** The events of an SSE body, `[DONE]` included, and its comments. */
export function readSse(text: string): { readonly events: SseEvent[]; readonly comments: number } {
  const events: SseEvent[] = [];
  let comments = 0;
  for (const block of text.split('\n\n')) {
    const lines = block.split('\n');
    comments += lines.filter((line) => line.startsWith(':')).length;
    const data = lines.filter((line) => line.startsWith('data: ')).map((line) => line.slice(6));
    if (data.length === 0) continue;
    const event = lines.find((line) => line.startsWith('event: '))?.slice(7);
    events.push({ event, data: data.join('\n') });
  }
  return { events, comments };
}
