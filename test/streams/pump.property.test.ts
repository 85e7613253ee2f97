/** Law: the pump and the pipe of Web Streams write the same bytes and end the same way. */
import assert from 'node:assert/strict';
import { PassThrough, Readable, Writable } from 'node:stream';
import { test } from 'node:test';
import fc from 'fast-check';
import { readBody } from '../../src/streams/body-source.ts';
import { bodyStream } from '../support/streams/body-stream.ts';
import { chain, chainSealed } from '../../src/streams/chain.ts';
import { systemClock } from '../../src/streams/clock.ts';
import { type PumpSource, pump } from '../../src/streams/pump.ts';
import { sinkTo } from '../support/streams/response-sink.ts';
import { createResponseWriter } from '../../src/streams/response-writer.ts';
import { seal, sealed } from '../../src/streams/seal.ts';
import { type SseEvent, sseDecode } from '../../src/streams/sse-decode.ts';
import type { SealingStage, Stage } from '../../src/streams/stage.ts';
import { StreamError } from '../../src/streams/stream-error.ts';
import { toTransform } from '../../src/streams/to-transform.ts';
import { until } from '../support/loopback.ts';
import { type Reaction, type ScriptedStage, scripted } from '../support/scripted-stage.ts';

const options = { clock: systemClock, writeStallMs: 60_000 };
const message = (reason: unknown): string =>
  reason instanceof StreamError ? reason.reason : reason instanceof Error ? reason.message : String(reason);

const dataOf: Stage<SseEvent, string> = {
  ended: false,
  push(event, out) {
    out.push(event.data);
  },
  end() {
    // Nothing is held back.
  },
};

function decoder(): Stage<Uint8Array, string> {
  return chain(sseDecode({ maxEventBytes: 100 }), dataOf);
}

/** A response that takes one write at a time and keeps what it took. */
function slowResponse(): { response: Writable; text: () => string; writes: () => number } {
  let text = '';
  let writes = 0;
  const response = new Writable({
    highWaterMark: 1,
    decodeStrings: false,
    write(chunk, _encoding, done) {
      text += chunk;
      writes++;
      setImmediate(done);
    },
  });
  return { response, text: () => text, writes: () => writes };
}

const reaction: fc.Arbitrary<Reaction> = fc.record({
  words: fc.nat({ max: 3 }),
  next: fc.oneof(
    { weight: 8, arbitrary: fc.constant('go on' as const) },
    fc.constant('throw' as const),
    fc.constant('end' as const),
  ),
});
const pieces = fc.array(fc.constantFrom('data: a\n\n', 'data: b\n', '\n', ': c\n\n', 'da', 'ta: e\n\n', '{"error":1}\n'), {
  maxLength: 8,
});

function bodyOf(sent: readonly string[], dies: boolean): Readable {
  return Readable.from(
    (function* () {
      for (const piece of sent) yield Buffer.from(piece);
      if (dies) throw new Error('died');
    })(),
    { objectMode: false },
  );
}

/** The body as the pump reads it. */
function sourceOf(body: Readable): PumpSource<Uint8Array> {
  const reader = readBody(body);
  let ended = false;
  return {
    get ended() {
      return ended;
    },
    take(out) {
      const batch = reader.take();
      if (batch === undefined) return false;
      if (batch === null) ended = true;
      else out.push(...batch);
      return true;
    },
    ready: (wake) => reader.ready(wake),
    pause: () => undefined,
    resume: () => undefined,
    cancel: (reason) => reader.cancel(reason),
  };
}

function pumpTo(
  body: Readable,
  stage: SealingStage<Uint8Array, string, string>,
  response: Writable,
  more: { readonly finalFrames?: () => readonly string[] } = {},
): Promise<void> {
  const source = sourceOf(body);
  const writer = createResponseWriter(response, { ...options, onGone: (reason) => source.cancel(reason) });
  return pump(source, sealed(stage, message), writer, more);
}

test('pump = pipe: bytes and endings', async () => {
  await fc.assert(
    fc.asyncProperty(pieces, fc.array(reaction, { maxLength: 6 }), fc.boolean(), async (sent, script, dies) => {
      const run = async (carry: (body: Readable, stage: ScriptedStage, response: Writable) => Promise<void>) => {
        const client = slowResponse();
        const body = bodyOf(sent, dies);
        await carry(body, scripted('s', script), client.response);
        await until(() => body.destroyed || body.readableEnded, 'the body is let go');
        return { text: client.text(), finished: client.response.writableFinished };
      };
      const piped = await run((body, stage, response) =>
        // A seal that has ended cancels its source, which rejects only the pipes above it.
        bodyStream(body).pipeThrough(toTransform(decoder())).pipeThrough(seal(stage, message)).pipeTo(sinkTo(response, options)),
      );
      const fused = await run((body, stage, response) =>
        bodyStream(body)
          .pipeThrough(seal(chainSealed(decoder(), stage), message))
          .pipeTo(sinkTo(response, options)),
      );
      const pumped = await run((body, stage, response) => pumpTo(body, chainSealed(decoder(), stage), response));
      assert.deepEqual(fused, piped);
      assert.deepEqual(pumped, piped);
      assert.equal(piped.finished, true);
    }),
    { numRuns: 150 },
  );
});

test('a client that leaves destroys the body at once, while it waits and while it is stalled; nothing is said any more', async () => {
  for (const stalled of [false, true]) {
    const body = new PassThrough();
    const stage = scripted('s', []);
    const response = new Writable({ highWaterMark: 1, write: (_chunk, _encoding, done) => (stalled ? undefined : done()) });
    const pumped = pumpTo(body, chainSealed(decoder(), stage), response);
    const outcome = assert.rejects(pumped, { reason: 'client_gone' });
    body.write('data: a\n\n');
    await until(() => stage.calls.length === 1, 'the first event');
    assert.equal(response.writableNeedDrain, stalled);
    response.destroy();
    await outcome;
    assert.equal(body.destroyed, true);
    assert.deepEqual(stage.calls, ['push']);
  }
});

test('back-pressure: nothing is read for a client that takes nothing', async () => {
  const body = new PassThrough();
  const stage = scripted('s', []);
  const response = new Writable({ highWaterMark: 1, write: () => undefined });
  const outcome = assert.rejects(pumpTo(body, chainSealed(decoder(), stage), response));
  body.write('data: a\n\n');
  await until(() => stage.calls.length === 1, 'the first event');
  for (let i = 0; i < 20; i++) body.write('data: a\n\n');
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(stage.calls.length, 1);
  response.destroy();
  await outcome;
});

test('a fail that throws: the last words, then the connection is cut', async () => {
  const client = slowResponse();
  const broken: SealingStage<Uint8Array, string, string> = {
    ended: false,
    push(_input, out) {
      out.push('a');
    },
    end() {
      throw new Error('premature');
    },
    fail(_failure, out) {
      out.push('half');
      throw new Error('broken');
    },
  };
  const pumped = pumpTo(bodyOf(['x'], false), broken, client.response, { finalFrames: () => ['!'] });
  await assert.rejects(pumped, /broken/);
  assert.equal(client.text(), 'a!');
  assert.equal(client.response.destroyed && !client.response.writableFinished, true);
});

test('one read is one write', async () => {
  const client = slowResponse();
  const sent = ['data: a\n\n'.repeat(50)];
  await pumpTo(bodyOf(sent, false), chainSealed(decoder(), scripted('s', [])), client.response);
  assert.equal(client.writes(), 2);
});
