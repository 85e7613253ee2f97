/** The linearity law over requests for pictures and vectors: every shape of their members, read and written for every route. */
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import type { JsonObject } from '../../../src/codecs/canonical/json.ts';
import { encodeEmbeddingRequest, readEmbeddingRequest } from '../../../src/codecs/embeddings/request.ts';
import {
  IMAGE_UPSTREAMS,
  type ImageOperation,
  type ImageUpstream,
  readImageForm,
  readImageJson,
} from '../../../src/codecs/images/index.ts';
import type { ImageRequest } from '../../../src/codecs/images/request.ts';
import type { Case, Work } from './growth.ts';
import { list } from './schema-shapes.ts';

const members = (count: number, name: (at: number) => string): JsonObject =>
  Object.fromEntries(list(count, (at) => [name(at), 1] as const));

const SHAPES: Readonly<Record<string, (count: number) => JsonObject>> = {
  'members that nobody knows': (count) => members(count, (at) => `member_${at}`),
  'one member, spelt as an element of a list': (count) => members(count, (at) => `n[${at}]`),
  'one member, in small and capital letters': (count) => members(count, (at) => capitals('max_completion_tokens', at + 1)),
  'a long prompt': (count) => ({ prompt: 'a word and '.repeat(count) }),
};

/** Each bit of `bits` makes one letter a capital. */
function capitals(name: string, bits: number): string {
  let left = bits;
  return name.replace(/[a-z]/g, (letter) => {
    const isCapital = left % 2 === 1;
    left = Math.floor(left / 2);
    return isCapital ? letter.toUpperCase() : letter;
  });
}

const PICTURE = 'https://host.example/a.png';

function written(upstream: ImageUpstream, request: ImageRequest): void {
  const channel = { generationTool: true, defaults: {} };
  upstream.refuse(request, channel);
  const target = { ...channel, upstreamModel: 'up', stream: false, override: (json: string) => json, mint: () => 'slot' };
  upstream.encode(request, target);
}

/** What cannot be said there must be found out in linear time, too. */
function tolerant(run: () => void): void {
  try {
    run();
  } catch (thrown) {
    if (!(thrown instanceof GatewayError && thrown.blame === 'client')) throw thrown;
  }
}

function workOf(body: JsonObject, run: (text: string, json: JsonObject) => void): Work {
  const text = JSON.stringify(body);
  return { json: [text], run: () => tolerant(() => run(text, body)) };
}

const jsonOf = (upstream: ImageUpstream, operation: ImageOperation): Case[] =>
  Object.entries(SHAPES).map(([name, shape]) => ({
    name: `${operation} of a picture by ${upstream.channelType}: ${name}`,
    work(count) {
      const images = operation === 'edit' ? { images: [{ image_url: PICTURE }] } : {};
      const body = { model: 'm', prompt: 'x', ...images, ...shape(count) };
      return workOf(body, (text, json) => written(upstream, readImageJson(operation, text, json)));
    },
  }));

const formOf = (upstream: ImageUpstream): Case[] =>
  Object.entries(SHAPES).map(([name, shape]) => ({
    name: `form for a picture by ${upstream.channelType}: ${name}`,
    work(count) {
      const fields = Object.entries({ model: 'm', prompt: 'x', ...shape(count) }).map(([field, value]) => [field, String(value)]);
      const parts = fields.map(([field = '', value = '']) => {
        const bytes = Buffer.from(value);
        return { name: field, chunks: [bytes], size: bytes.length };
      });
      const picture = Buffer.from('a picture');
      const image = { name: 'image', filename: 'a.png', mime: 'image/png', chunks: [picture], size: picture.length };
      return { json: [JSON.stringify(fields)], run: () => tolerant(() => written(upstream, readImageForm([...parts, image]))) };
    },
  }));

const VECTORS: Readonly<Record<string, (count: number) => JsonObject>> = {
  ...SHAPES,
  'many texts': (count) => ({ input: list(count, (at) => `text ${at}`) }),
  'many lists of token ids': (count) => ({ input: list(count, (at) => [at, at + 1]) }),
};

const VECTOR_CASES = Object.entries(VECTORS).map(
  ([name, shape]): Case => ({
    name: `vectors: ${name}`,
    work: (count) =>
      workOf({ model: 'm', input: 'x', ...shape(count) }, (text, json) => {
        encodeEmbeddingRequest(readEmbeddingRequest(text, json), 'up');
      }),
  }),
);

export const IMAGE_REQUEST_CASES: readonly Case[] = [
  ...[...IMAGE_UPSTREAMS.values()].flatMap((upstream) => [
    ...jsonOf(upstream, 'generation'),
    ...jsonOf(upstream, 'edit'),
    ...formOf(upstream),
  ]),
  ...VECTOR_CASES,
];
