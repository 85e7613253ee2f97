/** Laws of image streams: cuts do not matter, no prefix is a success, garbage gets only documented errors. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import { IMAGE_UPSTREAMS, type ImageAnswer, type ImageUpstream } from '../../../src/codecs/images/index.ts';
import { chain } from '../../../src/streams/chain.ts';
import { sseDecode } from '../../../src/streams/sse-decode.ts';
import { StreamError } from '../../../src/streams/stream-error.ts';

const PICTURE = 'iVBORw0KGgo=';
const event = (body: { readonly type: string }, named = true) =>
  `${named ? `event: ${body.type}\n` : ''}data: ${JSON.stringify(body)}\n\n`;
const item = { type: 'image_generation_call', status: 'completed', result: PICTURE };
const STREAMS: Readonly<Record<string, string>> = {
  openai_image:
    event({ type: 'image_edit.partial_image', ...{ b64_json: PICTURE } }) +
    event({
      type: 'image_edit.completed',
      ...{ b64_json: PICTURE, prompt: 'é😀', usage: { input_tokens: 1, output_tokens: 2 } },
    }),
  openrouter_image: `: PROCESSING\n\n${event({ type: 'image_generation.completed', ...{ b64_json: PICTURE, created: 3 } }, false)}`,
  responses:
    event({ type: 'response.created' }) +
    event({ type: 'response.output_item.done', ...{ output_index: 0, item } }) +
    event({ type: 'response.completed', ...{ response: { status: 'completed', output: [item] } } }),
};

/** The answer of bytes in chunks; throws as the upstream's failure would. */
function answerOf(upstream: ImageUpstream, chunks: readonly Uint8Array[]): ImageAnswer | undefined {
  const stages = chain(sseDecode({ maxEventBytes: 1 << 20 }), upstream.decodeEvents());
  const answers: ImageAnswer[] = [];
  for (const chunk of chunks) if (!stages.ended) stages.push(chunk, answers);
  if (!stages.ended) stages.end(answers);
  return answers[0];
}

function cut(bytes: Uint8Array, points: readonly number[]): Uint8Array[] {
  const at = [...new Set(points.map((point) => point % bytes.length))].sort((a, b) => a - b);
  return [0, ...at].map((from, index) => bytes.subarray(from, at[index] ?? bytes.length));
}

function isDocumented(error: unknown): boolean {
  return (
    error instanceof StreamError || (error instanceof GatewayError && error.blame === 'upstream' && /\S\.$/.test(error.message))
  );
}

for (const upstream of IMAGE_UPSTREAMS.values()) {
  const bytes = Buffer.from(STREAMS[upstream.channelType] ?? '');

  test(`${upstream.channelType}: cuts do not matter`, () => {
    const whole = answerOf(upstream, [bytes]);
    assert.equal(whole?.images[0]?.data, PICTURE);
    fc.assert(
      fc.property(fc.array(fc.nat()), (points) => {
        assert.deepEqual(answerOf(upstream, cut(bytes, points)), whole);
      }),
    );
  });

  test(`${upstream.channelType}: no prefix is a success`, () => {
    for (let length = 0; length < bytes.length - 1; length++) {
      assert.throws(() => answerOf(upstream, [bytes.subarray(0, length)]), isDocumented, `prefix of ${length}`);
    }
  });

  test(`${upstream.channelType}: garbage gets only documented errors`, () => {
    const words = fc.constantFrom(
      'data: ',
      'event: ',
      '\n\n',
      '\n',
      ...bytes.toString().split('\n'),
      '[DONE]',
      '{}',
      'null',
      '[]',
    );
    const noise = fc
      .array(fc.oneof(words, fc.json(), fc.string()), { maxLength: 12 })
      .map((pieces) => Buffer.from(pieces.join('')));
    fc.assert(
      fc.property(noise, (text) => {
        try {
          const answer = answerOf(upstream, [text]);
          assert.ok((answer?.images.length ?? 0) > 0);
        } catch (error) {
          if (!isDocumented(error)) throw error;
        }
      }),
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.json(),
          fc
            .record({ data: fc.jsonValue(), usage: fc.jsonValue(), output: fc.jsonValue() })
            .map((value) => JSON.stringify(value)),
        ),
        (text) => {
          try {
            assert.ok(upstream.decodeWhole(text).images.length > 0);
          } catch (error) {
            if (!isDocumented(error)) throw error;
          }
        },
      ),
    );
  });
}
