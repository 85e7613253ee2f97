/**
 * What a Channel behind a cloud sends beside what the vendor's own package sends for the same request: method, path, query, body
 * and headers.
 */
import assert from 'node:assert/strict';
import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';
import type { test, TestContext } from 'node:test';
import type { ReceivedRequest } from '../../src/simulator/journal.ts';
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts';
import { KEY, type TestGateway, testGateway } from './test-gateway.ts';

/** Sent by one side alone, each for a reason. */
export const ALONE: Readonly<Record<string, string>> = {
  'user-agent': 'everybody names himself',
  'accept-encoding': 'a compressed stream arrives in blocks: the gateway asks for none',
  'accept-language': 'of fetch',
  'sec-fetch-mode': 'of fetch',
  connection: 'of the connection',
  'x-goog-api-client': 'the name of the package',
  authorization: 'a signature covers the other headers; a token is the test’s own: both are checked by themselves',
  'x-amz-user-agent': 'the name of the package',
  'amz-sdk-invocation-id': 'a count of the package’s own repeats',
  'amz-sdk-request': 'a count of the package’s own repeats',
};

export interface Compared {
  readonly method: string;
  readonly path: string;
  readonly query: object;
  readonly headers: object;
  readonly body: unknown;
}

export function comparable({ method, path, query, headers, body }: ReceivedRequest, less: readonly string[] = []): Compared {
  const kept = Object.entries(headers).filter(
    ([name]) => ALONE[name] === undefined && !name.startsWith('x-stainless-') && !less.includes(name),
  );
  return { method, path, query, headers: Object.fromEntries(kept.sort()), body };
}

async function answered(promise: PromiseLike<unknown>): Promise<void> {
  const answer = await promise;
  if (typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer)
    for await (const _event of answer as AsyncIterable<unknown>);
}

export type Asked = readonly [path: string, body: object | FormData, headers?: Record<string, string>];

/** What the package sent, and what the gateway sent for what the package would have sent to the vendor itself. */
export async function both(
  gateway: TestGateway,
  simulator: Simulator,
  sdk: () => PromiseLike<unknown>,
  [path, body, headers = {}]: Asked,
): Promise<readonly [theirs: ReceivedRequest, ours: ReceivedRequest]> {
  simulator.reset();
  simulator.enqueue({ strict: false, times: 2 });
  await answered(sdk());
  const answer =
    body instanceof FormData
      ? await fetch(gateway.url + path, { method: 'POST', headers: { authorization: `Bearer ${KEY}` }, body })
      : await gateway.post(path, body, { headers });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  const [theirs, ours] = simulator.requests;
  assert.ok(theirs !== undefined && ours !== undefined);
  return [theirs, ours];
}

/** A gateway whose only Channel has the model `m`, of this kind. */
export function gatewayOf(simulator: Simulator, channel: object, kind?: string): Promise<TestGateway> {
  const model = { ...(kind === undefined ? {} : { kind }), price: { input: '1', output: '2' } };
  return testGateway({ channels: [{ id: 'one', base_url: simulator.url, ...channel }], models: { m: model } });
}

export async function simulated(t: TestContext): Promise<Simulator> {
  const simulator = await startSimulator({ pace: { ms: 0 } });
  t.after(() => simulator.close());
  return simulator;
}

/** The clock stands still. */
export function frozen(t: { readonly mock: typeof test.mock }): void {
  t.mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-03-04T05:06:07Z') });
}

/** What `@smithy/signature-v4` wants of a hash. */
export class Sha256 {
  readonly #hash: Hash | Hmac;

  constructor(secret?: string | ArrayBuffer | Uint8Array) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', Buffer.from(secret as Uint8Array));
  }

  update(data: Uint8Array): void {
    this.#hash.update(data);
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest());
  }

  reset(): void {
    throw new Error('not used');
  }
}
