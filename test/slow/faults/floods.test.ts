/**
 * Floods of one key, or of nobody, over what is no conversation: lists, pages that are not there, pictures, tasks, the operators'
 * port. Another key's stream is stalled for no longer than {@link STALL_MS}, in processor time of the longest turn.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makePng } from '../../../src/simulator/png.ts';
import { figure } from '../../support/figures.ts';
import { type Rig, withRig } from '../../support/memory-law.ts';
import { KEY } from '../../support/test-gateway.ts';
import { flood, leastTurn, request } from './support/flood.ts';

const STALL_MS = 50;
const PRICE = { price: { input: '0.0001', output: '0.0001' } };
/** An operator with a large catalogue. */
const MODELS = Object.fromEntries(Array.from({ length: 2_000 }, (_, at) => [`model-${at}`, PRICE]));
const CHANNELS = 20;

/** Beside those of the rig: many Channels that have every model, and one that makes pictures. */
const channels = (url: string): readonly object[] => [
  ...Array.from({ length: CHANNELS }, (_, at) => ({
    ...{ id: `c${at}`, type: 'messages', base_url: url, api_key: 'k', models: Object.keys(MODELS) },
  })),
  { id: 'p', type: 'openai_image', base_url: url, api_key: 'k', models: ['picture'] },
];

/** A form of an edit with a picture of so many bytes, as it goes over the wire. */
function edit(bytes: number): string {
  const part = (head: string, value: string): string => `--b\r\ncontent-disposition: form-data; ${head}\r\n\r\n${value}\r\n`;
  const picture = makePng({ width: 40, height: 30 }, 9, false).toString('latin1') + 'x'.repeat(bytes);
  const fields = part('name="model"', 'picture') + part('name="prompt"', 'a ship');
  const file = part('name="image"; filename="a.png"\r\ncontent-type: image/png', picture);
  const body = `${fields}${file}--b--\r\n`;
  const head = `POST /v1/images/edits HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${KEY}\r\n`;
  return `${head}content-type: multipart/form-data; boundary=b\r\ncontent-length: ${Buffer.byteLength(body, 'latin1')}\r\n\r\n${body}`;
}

interface Flood {
  readonly connections: number;
  /** In one packet of each connection. */
  readonly sent: string;
  readonly answers: number;
  readonly statuses: readonly string[];
}

const many = (line: string, count: number, key = KEY): string => request(line, '', key).repeat(count);

const FLOODS: Readonly<Record<string, Flood>> = {
  'a thousand questions for two thousand models': {
    ...{ connections: 50, sent: many('GET /v1/models', 20), answers: 20, statuses: ['200'] },
  },
  'ten thousand questions for one model': {
    ...{ connections: 100, sent: many('GET /v1/models/model-7', 100), answers: 100, statuses: ['200'] },
  },
  'ten thousand questions for what was used, by hour and model': {
    ...{ connections: 100, sent: many('GET /v1/usage?group_by=hour,model', 100), answers: 100, statuses: ['200'] },
  },
  'ten thousand questions before another site may ask': {
    ...{ connections: 100, sent: many('OPTIONS /v1/messages', 100, 'x'), answers: 100, statuses: ['204'] },
  },
  'ten thousand heads of what nobody may see': {
    ...{ connections: 100, sent: many('HEAD /v1/models', 100, 'x'), answers: 100, statuses: ['401'] },
  },
  'ten thousand paths that are not there': {
    ...{ connections: 100, sent: many('GET /v1/nothing', 100, 'x'), answers: 100, statuses: ['404'] },
  },
  'ten thousand methods that are not allowed': {
    ...{ connections: 100, sent: many('DELETE /v1/messages', 100), answers: 100, statuses: ['405'] },
  },
  'three hundred edits of pictures of 100 KB at once': {
    ...{ connections: 300, sent: edit(100_000), answers: 1, statuses: ['200'] },
  },
  'eight edits of pictures of 16 MB at once': {
    ...{ connections: 8, sent: edit(16_000_000), answers: 1, statuses: ['200'] },
  },
};

for (const [name, { connections, sent, answers, statuses }] of Object.entries(FLOODS)) {
  test(`F47: ${name}: another key's stream is stalled for no longer than ${STALL_MS} ms`, async (t) => {
    const models = { m: PRICE, free: PRICE, lowered: PRICE, ...MODELS, picture: { kind: 'image', ...PRICE } };
    const attack = async (rig: Rig): Promise<void> => {
      assert.deepEqual([...(await flood(rig, Array<Buffer>(connections).fill(Buffer.from(sent, 'latin1')), answers))], statuses);
    };
    await withRig(
      { models },
      async (rig) => {
        const least = await leastTurn(rig, STALL_MS, () => attack(rig));
        figure(t, `${name}: the longest turn of the event loop`, `${Math.round(least)} ms`);
        assert.ok(least <= STALL_MS, `a turn took ${least.toFixed(1)} ms`);
      },
      channels,
    );
  });
}
