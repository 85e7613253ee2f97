/** Answers of the upstreams that hold no conversation: pictures, videos, vectors, compactions. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { decodeEmbeddingAnswer, decodeEmbeddingError, readEmbeddingRequest } from '../../src/codecs/embeddings/index.ts';
import { encodeImageAnswer, encodeImageEvents, IMAGE_UPSTREAMS, type ImageAnswer } from '../../src/codecs/images/index.ts';
import { readCompaction } from '../../src/codecs/responses/answer/compact.ts';
import { atOnce } from '../../src/codecs/steps.ts';
import { videoUpstream } from '../../src/codecs/videos/registry.ts';
import type { Progress, VideoUpstream } from '../../src/codecs/videos/upstream.ts';
import { parseJsonBody } from '../../src/http/request/body.ts';
import { isDocumented, type Mutation, mutate, mutation, type Target } from './mutations.ts';

const PICTURE = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const USAGE = { input_tokens: 3, output_tokens: 5, total_tokens: 8, input_tokens_details: { text_tokens: 3, image_tokens: 0 } };
const IMAGES: readonly object[] = [
  { created: 1, data: [{ b64_json: PICTURE, revised_prompt: 'x' }], size: '1x1', quality: 'low', usage: USAGE },
  { created: 1, data: [{ url: 'https://a.example/x.png' }, { b64_json: PICTURE, media_type: 'image/png' }] },
  {
    id: 'resp_1',
    object: 'response',
    status: 'completed',
    model: 'm',
    output: [{ type: 'image_generation_call', id: 'ig_1', status: 'completed', result: PICTURE, size: '1x1' }],
    usage: { input_tokens: 3, output_tokens: 5, total_tokens: 8 },
  },
];
const EVENTS: readonly object[] = [
  { type: 'image_generation.completed', b64_json: PICTURE, created_at: 1, size: '1x1', usage: USAGE },
  { type: 'response.completed', sequence_number: 1, response: IMAGES[2] },
  { type: 'error', error: { message: 'no', code: 'c', type: 't' } },
];
const VIDEOS: readonly object[] = [
  { id: 'cgt-1', model: 'm', status: 'succeeded', content: { video_url: 'https://a.example/x.mp4' }, usage: { total_tokens: 5 } },
  { id: 'cgt-1', model: 'm', status: 'running', error: null },
  { task_id: '1', status: 'Success', file_id: '2', base_resp: { status_code: 0, status_msg: 'success' } },
  { task_id: '1', status: 'Fail', base_resp: { status_code: 1027, status_msg: 'no' } },
  { file: { file_id: 2, download_url: 'https://a.example/x.mp4' }, base_resp: { status_code: 0, status_msg: 'success' } },
  { task: { id: '1', status: 'succeeded', output: [{ url: 'https://a.example/x.mp4' }] }, base_resp: { status_code: 0 } },
  { error: { code: 'c', message: 'no', type: 't' } },
];

interface Input {
  readonly seed: number;
  readonly mutations: readonly Mutation[];
  readonly status: number;
}

const input: fc.Arbitrary<Input> = fc.record({
  seed: fc.nat(1000),
  mutations: fc.array(mutation, { maxLength: 5 }),
  status: fc.constantFrom(200, 400, 404, 429, 500),
});

function changed(seeds: readonly object[], { seed, mutations }: Input): string {
  return JSON.stringify(mutate(seeds[seed % seeds.length], mutations)) ?? '';
}

function refusable(run: () => void): void {
  try {
    run();
  } catch (thrown) {
    isDocumented(thrown, ['upstream']);
  }
}

function checkProgress(progress: Progress, isGood: boolean): void {
  if (progress.kind === 'succeeded') {
    assert.ok(isGood, 'no success from a failed query');
    assert.ok(URL.canParse(progress.url), progress.url);
  }
  if (progress.kind === 'failed') assert.ok(progress.error.code !== '' && progress.error.message !== '');
}

const videoUpstreams = (['ark_video', 'minimax_video'] as const)
  .flatMap((type) => (['v1', 'v2'] as const).map((version) => videoUpstream(type, version)))
  .filter((upstream): upstream is VideoUpstream => upstream !== undefined);

export const ANSWER_TARGETS: readonly Target[] = [
  {
    name: 'whole-images',
    runs: 300,
    input,
    check(value) {
      const given = value as Input;
      for (const upstream of IMAGE_UPSTREAMS.values()) {
        isDocumented(upstream.decodeError({ status: given.status, headers: {}, text: changed(IMAGES, given) }), [
          'upstream',
          'client',
        ]);
        refusable(() => {
          const answer = upstream.decodeWhole(changed(IMAGES, given));
          assert.ok(answer.images.length > 0, 'an answer has a picture');
          JSON.parse(String(encodeImageAnswer(answer, 1)));
          encodeImageEvents('generation', answer, 1);
        });
      }
    },
  },
  {
    name: 'stream-images',
    runs: 300,
    input,
    check(value) {
      const given = value as Input;
      for (const upstream of IMAGE_UPSTREAMS.values()) {
        refusable(() => {
          const stage = upstream.decodeEvents();
          const out: ImageAnswer[] = [];
          stage.push({ event: undefined, data: changed(EVENTS, given) }, out);
          if (!stage.ended) stage.end(out);
          assert.equal(out.length, 1, 'a stream that ended well has one answer');
        });
      }
    },
  },
  {
    name: 'whole-videos',
    runs: 400,
    input,
    check(value) {
      const given = value as Input;
      const answer = { status: given.status, headers: {}, text: changed(VIDEOS, given) };
      const isGood = given.status === 200;
      for (const upstream of videoUpstreams) {
        const submission = upstream.readSubmission(answer);
        if (submission.kind === 'accepted') assert.ok(isGood && submission.upstreamId !== '');
        checkProgress(upstream.readProgress(answer, 'task'), isGood);
        checkProgress(upstream.readLookup(answer, 'file'), isGood);
      }
    },
  },
  {
    name: 'whole-embeddings',
    runs: 300,
    input,
    check(value) {
      const given = value as Input;
      for (const encoding_format of ['float', 'base64']) {
        const { text, json } = parseJsonBody(Buffer.from(JSON.stringify({ model: 'm', input: ['a', 'b'], encoding_format })));
        const request = readEmbeddingRequest(text, json);
        const data = [
          { object: 'embedding', index: 0, embedding: [0.5, -1] },
          { object: 'embedding', index: 1, embedding: 'AACAPwAAgD8=' },
        ];
        const seeds = [{ object: 'list', data, model: 'up', usage: { prompt_tokens: 2, total_tokens: 2 } }];
        refusable(() => {
          const answer = decodeEmbeddingAnswer(changed(seeds, given), request);
          assert.equal(JSON.parse(answer.body).data.length, 2);
          assert.ok((answer.usage?.input ?? 0) >= 0);
        });
        const refused = decodeEmbeddingError({ status: given.status, headers: {}, text: changed(seeds, given) });
        isDocumented(refused, ['upstream', 'client']);
      }
    },
  },
  {
    name: 'whole-compaction',
    runs: 300,
    input,
    check(value) {
      const seeds = [
        { id: 'r', object: 'response.compaction', output: [{ type: 'compaction', encrypted_content: 'x' }], usage: USAGE },
      ];
      refusable(() => {
        const { generated, usage } = atOnce(readCompaction(changed(seeds, value as Input)));
        assert.ok(Array.isArray(generated.items) && (usage?.output ?? 0) >= 0);
      });
    },
  },
];
