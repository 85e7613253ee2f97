/**
 * Real messages streams and bodies: accepted or refused as listed, and for a messages client the same but for the gateway's own
 * members. Needs MIZU_FIXTURES (the folder that holds `recordings/`).
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import { fold } from '../../../src/codecs/canonical/fold.ts';
import { isObject, parseJson } from '../../../src/codecs/canonical/json.ts';
import { messagesClient, messagesUpstream } from '../../../src/codecs/messages/index.ts';
import { checkMessagesStream } from '../../support/client-order/messages.ts';
import type { Frame } from '../../../src/codecs/codec.ts';
import { decodeContext, decodeFrames, encodeSteps, framesOf, responseContext, stripped } from './support.ts';

const root = process.env['MIZU_FIXTURES'];
const folder = root === undefined ? undefined : join(root, 'recordings', 'anthropic-messages');
const skip = folder === undefined ? 'MIZU_FIXTURES is not set' : false;
const files = folder === undefined ? [] : readdirSync(folder);

interface Expected {
  readonly code: string;
  readonly reason: string;
}
/** The refused ones; every other file is accepted. */
const expected: Record<string, Expected> = JSON.parse(
  readFileSync(new URL('./recordings.expected.json', import.meta.url), 'utf8'),
);

/** A file may hold several answers one after another; the echo of a message_start is no new answer. */
function answersOf(frames: readonly Frame[]): Frame[][] {
  const answers: Frame[][] = [];
  let ended = true;
  for (const frame of frames) {
    if (ended) answers.push([]);
    answers.at(-1)?.push(frame);
    ended = frame.data.includes('"message_stop"');
  }
  return answers;
}

const streams = files
  .filter((file) => file.endsWith('.sse') || file.endsWith('.txt'))
  .flatMap((file) => {
    const text = readFileSync(join(folder ?? '', file), 'utf8');
    return answersOf(framesOf(text)).map((frames, index, all) => ({ name: all.length > 1 ? `${file}#${index}` : file, frames }));
  });
const bodies = files
  .filter((file) => file.endsWith('.json'))
  .map((name) => ({ name, text: readFileSync(join(folder ?? '', name), 'utf8') }));

function verdict(error: GatewayError | undefined): 'accepted' | Expected {
  return error === undefined ? 'accepted' : { code: error.code, reason: String(error.details.reason) };
}

test('every stream is accepted or refused as listed', { skip }, () => {
  const verdicts = streams.map(({ name, frames }): [string, unknown] => [name, verdict(decodeFrames(frames).error)]);
  const seen = Object.fromEntries(verdicts.filter(([, outcome]) => outcome !== 'accepted'));
  const listed = Object.fromEntries(Object.entries(expected).filter(([name]) => !name.endsWith('.json')));
  assert.deepEqual(seen, listed);
});

const OPAQUE = new Set(['signature', 'data']);

/** A payload without what the gateway may change, so that all else can be compared. */
function comparable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((one) => comparable(one));
  if (!isObject(value)) return value;
  const entries = Object.entries(value).map(([key, member]): [string, unknown] => {
    if (key === 'id' && value['type'] === 'message') return [key, 'id'];
    if (key === 'model' && value['type'] === 'message') return [key, 'model'];
    if (OPAQUE.has(key) && ['thinking', 'redacted_thinking', 'signature_delta'].includes(String(value['type'])))
      return [key, member !== ''];
    return [key, comparable(member)];
  });
  return Object.fromEntries(entries);
}

test('a messages client gets the same stream but for ids, model and sealed values', { skip }, () => {
  for (const { name, frames } of streams) {
    const { steps, error } = decodeFrames(frames);
    if (error !== undefined) continue;
    const out = encodeSteps(steps);
    checkMessagesStream(out);
    const sent = frames.filter((frame) => !/"type":\s*"ping"/.test(frame.data) || frame.event !== 'ping');
    const got = name.includes('incomplete_partial_json')
      ? out.filter(({ data }) => data !== '{"type":"content_block_stop","index":1}')
      : out;
    if (name.includes('duplicate')) sent.shift();
    assert.deepEqual(
      got.map(({ data }) => comparable(JSON.parse(data))),
      sent.map(({ data }) => comparable(JSON.parse(data))),
      name,
    );
  }
});

test('what the encoder does not splice keeps its bytes', { skip }, () => {
  for (const { name, frames } of streams) {
    const { steps, error } = decodeFrames(frames);
    if (error !== undefined) continue;
    const sent = new Set(frames.map(({ data }) => data));
    for (const { data, event } of encodeSteps(steps)) {
      const spliced = event === 'message_start' || /signature_delta|redacted_thinking/.test(data);
      if (!spliced && !name.includes('incomplete_partial_json')) assert.ok(sent.has(data), `${name}: ${data}`);
    }
  }
});

test('the same answers without their own text are legal client streams, too', { skip }, () => {
  for (const { name, frames } of streams) {
    const { steps, error } = decodeFrames(frames);
    if (error !== undefined) continue;
    const out = encodeSteps(stripped(steps));
    checkMessagesStream(out);
    const again = decodeFrames(out);
    assert.equal(again.error, undefined, name);
  }
});

test('a stream that is cut before its end is an error, wherever it is cut', { skip }, () => {
  for (const { name, frames } of streams) {
    const end = frames.findIndex(({ data }) => data.includes('"message_stop"'));
    for (let cut = 0; cut < end; cut += 1 + Math.floor(end / 12)) {
      const { steps, error } = decodeFrames(frames.slice(0, cut));
      assert.ok(error instanceof GatewayError, `${name} cut at ${cut}`);
      const out = encodeSteps(steps, error);
      assert.equal(out.at(-1)?.event, 'error');
      checkMessagesStream(out);
    }
  }
});

test('every body is accepted or refused as listed, and spliced losslessly', { skip }, () => {
  const seen: Record<string, unknown> = {};
  for (const { name, text } of bodies) {
    try {
      const step = messagesUpstream.decodeResponse(text, decodeContext());
      const end = step.events.at(-1);
      seen[name] = end?.type === 'response.end' && end.outcome.status === 'failed' ? verdict(end.outcome.error) : 'accepted';
      if (seen[name] !== 'accepted' || step.native === undefined) continue;
      const encoded = messagesClient.encodeResponse(fold(step.events), step.native, responseContext());
      assert.deepEqual(comparable(parseJson(encoded)), comparable(parseJson(text)), name);
      messagesClient.encodeResponse(fold(step.events), undefined, responseContext());
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      seen[name] = verdict(error);
    }
  }
  const listed = Object.fromEntries(Object.entries(expected).filter(([name]) => name.endsWith('.json')));
  const refused = Object.fromEntries(Object.entries(seen).filter(([, outcome]) => outcome !== 'accepted'));
  assert.deepEqual(refused, listed);
});
