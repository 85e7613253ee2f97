/**
 * Real answers and real requests. `recordings.expected.json` names every answer that is not accepted, with the reason.
 * Needs MIZU_FIXTURES; recordings are read as their INDEX says.
 */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import type { Step } from '../../../src/codecs/canonical/event.ts';
import { fold } from '../../../src/codecs/canonical/fold.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../src/codecs/canonical/json.ts';
import type { Frame } from '../../../src/codecs/codec.ts';
import { responsesClient, responsesUpstream } from '../../../src/codecs/responses/index.ts';
import { checkResponsesStream } from '../../support/client-order/responses.ts';
import { MENDED } from '../../support/fixtures.ts';
import {
  decode,
  decodeAll,
  decodeContext,
  encodeAll,
  eventsOnly,
  objectFrom,
  responseContext,
  target,
  terminalOf,
} from './support.ts';

const root = process.env['MIZU_FIXTURES'];
const skip = root === undefined ? 'MIZU_FIXTURES is not set' : false;
const FOLDERS = ['openai', 'azure', 'deepseek', 'xai', 'openrouter', 'open'].map((vendor) =>
  vendor === 'open' ? 'open-responses' : `${vendor}-responses`,
);
const EXPECTED: Record<string, string> = JSON.parse(readFileSync(new URL('./recordings.expected.json', import.meta.url), 'utf8'));

function filesOf(...endings: string[]): { name: string; text: string }[] {
  return FOLDERS.flatMap((folder) => {
    const path = join(root ?? '', 'recordings', folder);
    return readdirSync(path)
      .filter((file) => endings.some((ending) => file.endsWith(ending)))
      .map((file) => ({ name: `${folder}/${file}`, text: readFileSync(join(path, file), 'utf8') }));
  });
}

/** One response a list: some files hold several. */
function streamsOf(name: string, text: string): Frame[][] {
  const frames = name.endsWith('.sse')
    ? sseFrames(text)
    : text
        .split('\n')
        .filter((line) => line !== '')
        .map((data) => ({ event: undefined, data }));
  const streams: Frame[][] = [];
  for (const frame of frames) {
    if (frame.data.includes('"type":"response.created"') || streams.length === 0) streams.push([]);
    streams.at(-1)?.push(frame);
  }
  return streams;
}

function sseFrames(text: string): Frame[] {
  return text.split(/\r?\n\r?\n/).flatMap((block) => {
    const lines = block.split(/\r?\n/);
    const data = lines.filter((line) => line.startsWith('data:')).map((line) => line.slice(5).trim());
    const event = lines
      .find((line) => line.startsWith('event:'))
      ?.slice(6)
      .trim();
    return data.length === 0 ? [] : [{ event, data: data.join('\n') }];
  });
}

const verdict = (run: () => void): string => {
  try {
    run();
    return 'accepted';
  } catch (error) {
    if (error instanceof GatewayError) return error.details.reason ?? error.code;
    throw error;
  }
};

/** The event without what is the gateway's, so that the rest can be compared as JSON. */
function bare(value: JsonValue | undefined): JsonValue {
  if (Array.isArray(value)) return value.map(bare);
  if (!isObject(value)) return value ?? null;
  const isResponse = value['object'] === 'response';
  const entries = Object.entries(value).filter(([key]) => {
    if (isResponse && (key === 'id' || key === 'model')) return false;
    if (value['type'] === 'reasoning' && (key === 'encrypted_content' || key === 'signature')) return false;
    if (key.startsWith('cost') && value['total_tokens'] !== undefined) return false;
    return key !== 'sequence_number';
  });
  return Object.fromEntries(entries.map(([key, inner]) => [key, bare(inner)]));
}

test('recorded streams: accepted, or refused with the documented reason', { skip }, () => {
  const found: Record<string, string> = {};
  for (const { name, text } of filesOf('.sse', '.chunks.txt')) {
    for (const [index, frames] of streamsOf(name, text).entries()) {
      const result = verdict(() => decodeAll(frames));
      if (result !== 'accepted') found[`${name}#${index}`] = result;
    }
  }
  const expected = Object.entries(EXPECTED).filter(([name]) => name.includes('#'));
  assert.deepEqual(found, Object.fromEntries(expected));
});

test('recorded streams: the same dialect loses nothing; other dialects get a legal stream; whole = stream; prefixes fail', {
  skip,
}, () => {
  for (const { name, text } of filesOf('.sse', '.chunks.txt')) {
    for (const [index, frames] of streamsOf(name, text).entries()) {
      if (EXPECTED[`${name}#${index}`] !== undefined) continue;
      const { steps, order } = decodeAll(frames);
      const failed = steps.some((step) => step.native?.name === 'error');
      if (MENDED.has(name)) checkResponsesStream(encodeAll(steps), true);
      else if (!failed) {
        const shown = encodeAll(steps).map((frame) => bare(objectFrom(frame.data)));
        const given = frames.filter((frame) => frame.data !== '[DONE]').map((frame) => bare(objectFrom(frame.data)));
        assert.deepEqual(shown, given, name);
      }
      const own = encodeAll(eventsOnly(steps));
      checkResponsesStream(own);
      const whole = order.fold.whole({ status: 'completed', stop: 'end' });
      const body = objectFrom(responsesClient.encodeResponse(whole, undefined, responseContext()));
      const anonymous = (value: JsonObject) => JSON.stringify(value).replace(/"(id|item_id)":"[a-z]+_[0-9a-f]{32}"/g, '"-"');
      assert.equal(anonymous(body), anonymous(terminalOf(own)), name);
      checkBroken(steps);
    }
  }
});

function checkBroken(steps: readonly Step[]): void {
  for (let length = 0; length < steps.length; length += 1 + Math.floor(steps.length / 12)) {
    const encoder = responsesClient.encodeEvents(responseContext());
    const frames: Frame[] = [];
    for (const step of steps.slice(0, length)) encoder.push(step, frames);
    encoder.fail(new GatewayError('upstream_error', 'x'), frames);
    checkResponsesStream(frames);
  }
}

test('recorded bodies: accepted, or refused with the documented reason; spliced without loss', { skip }, () => {
  const found: Record<string, string> = {};
  for (const { name, text } of filesOf('.json')) {
    const result = verdict(() => {
      const step = responsesUpstream.decodeResponse(text, decodeContext());
      const body = responsesClient.encodeResponse(fold(step.events), step.native, responseContext());
      assert.deepEqual(bare(objectFrom(body)), bare(objectFrom(text)), name);
    });
    if (result !== 'accepted') found[name] = result;
  }
  assert.deepEqual(found, Object.fromEntries(Object.entries(EXPECTED).filter(([name]) => !name.includes('#'))));
});

const NOT_FORWARDED = new Set(['model', 'client_metadata', 'previous_response_id', 'type', 'generate']);

test('recorded requests of clients and of vendors are understood and forwarded unchanged', { skip }, () => {
  let count = 0;
  for (const body of requestBodies()) {
    const text = JSON.stringify(body);
    const request = decode(text);
    const forwarded = objectFrom(responsesUpstream.encodeRequest(request, target()).body);
    const rest = Object.fromEntries(Object.entries(body).filter(([key]) => !NOT_FORWARDED.has(key)));
    const { model, ...same } = forwarded;
    assert.equal(model, 'upstream-model');
    if (!text.includes('"type":"reasoning"')) assert.deepEqual(same, rest);
    count += 1;
  }
  assert.ok(count > 100, `${count} requests`);
});

function requestBodies(): JsonObject[] {
  const clients = join(root ?? '', 'client-requests');
  const files = readdirSync(clients)
    .filter((file) => file.endsWith('.jsonl'))
    .map((file) => join(clients, file));
  const vendors = FOLDERS.map((folder) => join(root ?? '', 'recordings', folder, 'requests.jsonl')).filter(existsSync);
  return [...files, ...vendors].flatMap((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .flatMap((line) => {
        const entry = objectFrom(line);
        const path = String(entry['url'] ?? entry['path']);
        const body = entry['body'] ?? entry['request'];
        if (!/\/responses$/.test(path) || !isObject(body) || typeof body['model'] !== 'string' || body['background'] === true)
          return [];
        return [body];
      }),
  );
}
