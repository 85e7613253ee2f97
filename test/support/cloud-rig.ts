/**
 * One Channel behind a cloud over sockets, perhaps with a plain one after it: what a client and the operator read of what goes
 * wrong.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { type Simulator, type SimulatorOptions, startSimulator } from '../../src/simulator/simulator.ts';
import type { RequestLogEntry } from '../../src/store/request-log.ts';
import type { Clock } from '../../src/streams/clock.ts';
import { CLOUD_FORMS, type CloudForm, cloudChannel, SECRETS, simulatedClouds } from './clouds.ts';
import { ask, eventually, MODELS, type TestGateway, testGateway } from './test-gateway.ts';

export const formOf = (name: string, source?: string): CloudForm => {
  const form = CLOUD_FORMS.find((one) => one.name === name);
  if (form === undefined) throw new Error(name);
  return source === undefined ? form : { ...form, source };
};
export const BEDROCK = formOf('messages on bedrock');
export const VERTEX = formOf('messages on vertex');
export const AZURE = formOf('chat on azure');

export interface Rig {
  readonly simulator: Simulator;
  readonly gateway: TestGateway;
  /** The status, the body, and what the operator reads of each attempt. */
  ask(changes?: object): Promise<{
    status: number;
    text: string;
    row: RequestLogEntry | undefined;
    attempts: readonly (readonly [string, string])[];
  }>;
}

export async function rig(
  t: TestContext,
  form: CloudForm,
  {
    options = {},
    clouds = {},
    simulator: more = {},
    second = false,
    clock,
    health = {},
  }: {
    options?: object;
    clouds?: Parameters<typeof simulatedClouds>[0];
    simulator?: SimulatorOptions;
    /** A plain Channel that comes after. */
    second?: boolean;
    clock?: Clock;
    health?: object;
  } = {},
): Promise<Rig> {
  const simulator = await startSimulator({ clouds: simulatedClouds(clouds), ...more });
  t.after(() => simulator.close());
  const after = { id: 'two', type: 'messages', base_url: simulator.url, models: ['m'], priority: 1 };
  const channels = [cloudChannel(form, simulator.url, { options }), ...(second ? [after] : [])];
  const gateway = await testGateway({ channels, models: MODELS, health }, clock === undefined ? {} : { clock });
  t.after(() => gateway[Symbol.asyncDispose]());
  return {
    simulator,
    gateway,
    async ask(changes = {}) {
      const before = gateway.store.settled.length;
      const answer = await gateway.post('/v1/messages', ask(changes));
      const text = await answer.text();
      await eventually(() => gateway.store.settled.length > before, 'a row');
      const attempts = (gateway.store.settled.at(-1)?.attempts ?? []).map(
        ({ errorCode = '', errorText = '' }) => [errorCode, errorText] as const,
      );
      const rows = JSON.stringify(gateway.store.settled, (_, value) => (typeof value === 'bigint' ? String(value) : value));
      const seen = text + gateway.logLines.join('') + rows;
      for (const secret of SECRETS) assert.ok(!seen.includes(secret), `${secret} was told: ${seen}`);
      return { status: answer.status, text, attempts, row: gateway.store.settled.at(-1) };
    },
  };
}

export const told = (text: string): { type: string; message: string } => JSON.parse(text).error;

/** Both what a client of one Channel gets, and that the next Channel answers where there is one. */
export async function failsOver(
  t: TestContext,
  form: CloudForm,
  options: Parameters<typeof rig>[2],
  code: string,
  words: RegExp,
): Promise<void> {
  const alone = await rig(t, form, options);
  const { status, text, attempts } = await alone.ask();
  assert.equal(status, 502, text);
  assert.equal(told(text).type, 'api_error');
  assert.equal(attempts[0]?.[0], code);
  assert.match(attempts[0]?.[1] ?? '', words);
  const two = await rig(t, form, { ...options, second: true });
  const saved = await two.ask();
  assert.equal(saved.status, 200, saved.text);
  assert.equal(saved.attempts.length, 2);
}
