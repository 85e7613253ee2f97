/**
 * Every recorded answer as an upstream of every client dialect: each ends as the committed list says, is legal for the client,
 * and means the same. Needs MIZU_FIXTURES; `RECORDINGS_WRITE=1` writes the list anew (review the difference).
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { GatewayError } from '../../src/codecs/canonical/error.ts';
import type { Step } from '../../src/codecs/canonical/event.ts';
import { fold, type Whole } from '../../src/codecs/canonical/fold.ts';
import { Order } from '../../src/codecs/canonical/order.ts';
import type { ClientCodec, UpstreamCodec } from '../../src/codecs/codec.ts';
import { UPSTREAMS } from '../../src/codecs/registry.ts';
import { bedrockFraming } from '../../src/http/platforms/bedrock/frames.ts';
import { asBedrock, DIALECTS } from '../support/dialects.ts';
import { COERCED, factsFor } from '../support/facts.ts';
import { answersOf, MENDED, type Recording, recordedStatus, recordings, skipWithoutFixtures } from '../support/fixtures.ts';
import type { TwoSided } from '../support/laws.ts';
import {
  bytesOf,
  decodeBytes,
  decodeContext,
  encodeSteps,
  ownerOf,
  requestOf,
  responseContext,
  sseText,
} from '../support/wire.ts';

type Verdict =
  | 'accepted'
  /** Refused by the decoder, or the upstream's own failure. */
  | { readonly code: string; readonly reason: string | undefined }
  /** Accepted; some clients cannot say it. */
  | { readonly refusedFor: Readonly<Record<string, string>> };

const list = new URL('recordings.expected.json', import.meta.url);
const expected: Record<string, Verdict> = existsSync(list) ? JSON.parse(readFileSync(list, 'utf8')) : {};
const actual: Record<string, Verdict> = {};
/** As a client of this dialect asks: a decoder keeps what it read in its own form for clients of its dialect alone. */
const asking = (client: ClientCodec) => ({ request: requestOf(client.dialect, { logprobs: { top: 20 } }) });

function upstreamOf({ dialect }: Recording): UpstreamCodec {
  const found = UPSTREAMS.find((codec) => codec.dialect === dialect);
  assert.ok(found !== undefined);
  return found;
}

/** The answer as steps, or how it failed. */
function decode(
  recording: Recording,
  text: string,
  client: ClientCodec,
): { steps: readonly Step[]; failure: GatewayError | undefined } {
  const upstream = upstreamOf(recording);
  if (recording.kind === 'stream') {
    const decoded = decodeBytes(upstream, [bytesOf(text)], asking(client));
    if (recording.dialect === 'messages' && client.dialect === 'messages')
      assertSameBehindBedrock(upstream, text, client, decoded);
    return decoded;
  }
  const order = new Order();
  const steps: Step[] = [];
  try {
    order.push(upstream.decodeResponse(text, decodeContext(ownerOf(upstream), asking(client))), steps);
    order.end();
    return { steps, failure: undefined };
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    return { steps, failure: error };
  }
}

function assertSameBehindBedrock(
  upstream: UpstreamCodec,
  text: string,
  client: ClientCodec,
  plain: ReturnType<typeof decodeBytes>,
): void {
  const framed = decodeBytes(upstream, [asBedrock(bytesOf(text))], asking(client), bedrockFraming);
  assert.deepEqual(framed.events, plain.events);
  assert.equal(framed.failure?.code, plain.failure?.code);
}

function replay(recording: Recording, text: string): Verdict {
  let fault: GatewayError | undefined;
  let common: Whole | undefined;
  const refusedFor: Record<string, string> = {};
  for (const client of DIALECTS) {
    const { steps, failure } = decode(recording, text, client.client);
    const events = steps.flatMap((step) => step.events);
    const end = events.at(-1);
    const said = end?.type === 'response.end' && 'error' in end.outcome ? end.outcome.error : undefined;
    fault = failure ?? said;
    const context = responseContext(client.client, ownerOf(upstreamOf(recording)));
    const isSame = client.client.dialect === recording.dialect;
    const frames = encodeSteps(client.client, recording.kind === 'stream' ? steps : bare(steps), context, failure);
    const ending = client.check(frames, isSame && recording.kind === 'stream');
    if (fault !== undefined) {
      assert.equal(ending, 'failure', 'a failure became a success');
      continue;
    }
    const whole = fold(events);
    common ??= whole;
    assert.deepEqual(whole, common, 'what was said depends on who hears it');
    let body: string;
    try {
      const native = isSame ? steps[0]?.native : undefined;
      body = client.client.encodeResponse(whole, recording.kind === 'json' ? native : undefined, context);
    } catch (error) {
      assert.ok(error instanceof GatewayError, String(error));
      assert.equal(error.code, 'response_not_representable');
      // Truncated arguments may stay in a native stream that ran into its cap, never in a whole answer (rule 11).
      const isCut = whole.items.some(({ item, status }) => item.kind === 'toolCall' && status === 'incomplete');
      assert.equal(ending, isSame && isCut ? 'success' : 'failure');
      refusedFor[isCut ? `${client.client.dialect} body` : client.client.dialect] = error.code;
      continue;
    }
    assert.equal(ending, 'success', `the stream ended with ${frames.at(-1)?.data.slice(0, 300)}`);
    compare(client, whole, sseText(frames), body);
    if (isSame && recording.kind === 'stream' && !MENDED.has(recording.name)) assertLossless(steps, client);
  }
  if (fault !== undefined) return { code: fault.code, reason: fault.details.reason };
  return Object.keys(refusedFor).length > 0 ? { refusedFor } : 'accepted';
}

/** A body that is said as a stream has no event text of its own. */
function bare(steps: readonly Step[]): Step[] {
  return steps.map(({ events }) => ({ events }));
}

function compare(client: TwoSided, whole: Whole, stream: string, body: string): void {
  const again = decodeBytes(client.upstream, [bytesOf(stream)]);
  assert.equal(again.failure?.message, undefined);
  const rest = decodeContext(ownerOf(client.upstream));
  const wanted = factsFor(whole, client.client.losses);
  const same = (got: Whole, form: string): void => {
    const facts = factsFor(got, client.client.losses);
    const outcome = wanted.outcome === COERCED ? wanted.outcome : facts.outcome;
    // A messages client gets a signature behind a text only in front of another block.
    const isMessages = client.client.dialect === 'messages';
    const opaque = isMessages ? wanted.opaque.filter((value) => facts.opaque.includes(value)) : wanted.opaque;
    assert.deepEqual({ ...facts, outcome }, { ...wanted, opaque }, `${client.client.dialect} ${form}`);
  };
  same(fold(again.events), 'stream');
  same(fold(client.upstream.decodeResponse(body, rest).events), 'body');
}

/** Members that are the gateway's: they are written anew (id, model), sealed, counted or placed by its own policy (usage). */
const OWNED = new Set(['response_id', 'model', 'usage', 'encrypted_content', 'sequence_number']);

/** Same dialect: everything that was sent is what the upstream sent, but for the members that are the gateway's own. */
function assertLossless(steps: readonly Step[], client: TwoSided): void {
  const start = steps.flatMap((step) => step.events).find((event) => event.type === 'response.start');
  const context = responseContext(client.client, ownerOf(client.upstream), { seal: (opaque) => opaque.value });
  const foreign = (data: string): string =>
    JSON.stringify(JSON.parse(data), function (this: Record<string, unknown>, key, member: unknown) {
      const isEnvelope = String(this['object']).startsWith('response') || Array.isArray(this['choices']);
      const isOwned = key === 'id' ? isEnvelope || member === start?.id || member === context.responseId : OWNED.has(key);
      return isOwned ? undefined : member;
    });
  const sent = new Set(
    steps.flatMap(({ native }) => (native === undefined || native.text === '[DONE]' ? [] : [foreign(native.text)])),
  );
  for (const { data } of encodeSteps(client.client, steps, context)) {
    if (data !== '[DONE]' && !isUsageChunk(data)) assert.ok(sent.has(foreign(data)), `changed: ${data.slice(0, 600)}`);
  }
}

/** chat: usage that came in the finish chunk, or beside it, goes out in the chunk that the client asked for. */
function isUsageChunk(data: string): boolean {
  return /"usage" ?: ?\{/.test(data) && data.includes('"choices"');
}

describe('recordings', { skip: skipWithoutFixtures }, () => {
  for (const recording of recordings()) {
    const status = recordedStatus(recording.name);
    if (status !== undefined && status >= 400) continue;
    const answers = recording.kind === 'stream' ? answersOf(recording) : [recording.text];
    answers.forEach((text, index) => {
      const name = answers.length > 1 ? `${recording.name}#${index}` : recording.name;
      test(name, () => {
        actual[name] = replay(recording, text);
        if (process.env['RECORDINGS_WRITE'] === undefined) assert.deepEqual(actual[name], expected[name]);
      });
    });
  }

  for (const recording of recordings()) {
    const status = recordedStatus(recording.name);
    if (status === undefined || status < 400) continue;
    test(`${recording.name}: an answer with status ${status} is an error for every client, without the upstream's secrets`, () => {
      const error = upstreamOf(recording).decodeError({ status, headers: {}, text: recording.text });
      actual[recording.name] = { code: error.code, reason: error.details.reason };
      // Some vendors refuse a key with 400; the facts say what it means.
      assert.ok([status, 401].includes(error.details.upstream?.status ?? 0));
      assert.ok(error.status >= 400 && error.status !== 401 && error.status !== 403);
      for (const { client } of DIALECTS) {
        const body = client.encodeError(error, 'req_1');
        assert.equal(typeof JSON.parse(body).error.message, 'string');
        assert.doesNotMatch(body, /https?:\/\/|sk-[a-zA-Z0-9]{8}/);
      }
      if (process.env['RECORDINGS_WRITE'] === undefined) assert.deepEqual(actual[recording.name], expected[recording.name]);
    });
  }

  test('the list names nothing else', () => {
    if (process.env['RECORDINGS_WRITE'] !== undefined) {
      const sorted = Object.fromEntries(Object.entries(actual).sort(([a], [b]) => (a < b ? -1 : 1)));
      writeFileSync(list, `${JSON.stringify(sorted, null, 2)}\n`);
      return;
    }
    assert.deepEqual(Object.keys(actual).sort(), Object.keys(expected).sort());
  });
});
