/** The linearity law over answers of image routes: every shape for every route that reads it, whole and as a stream. */
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import {
  encodeImageAnswer,
  encodeImageEvents,
  type ImageAnswer,
  type ImageUpstream,
  IMAGE_UPSTREAMS,
  rejectsStreaming,
} from '../../../src/codecs/images/index.ts';
import type { Case } from './growth.ts';
import { list, record } from './schema-shapes.ts';

const PNG = (at: number): string => Buffer.from(`picture ${at}`).toString('base64');
const pngOf = (at: number): object => ({ b64_json: PNG(at) });
const call = (at: number): object => ({ type: 'image_generation_call', id: `ig_${at}`, result: PNG(at) });
const message = (at: number): object => ({
  type: 'message',
  id: `msg_${at}`,
  content: [{ type: 'output_text', text: `${at} ` }],
});
const done = (item: object): object => ({ type: 'response.output_item.done', item });
const completed = (output: readonly object[]): object => ({ type: 'response.completed', response: { output } });

const BODIES: Readonly<Record<string, (count: number) => object>> = {
  pictures: (count) => ({ created: 1, data: list(count, pngOf) }),
  links: (count) => ({ created: 1, data: list(count, (at) => ({ url: `https://x.test/${at}.png` })) }),
  'one picture, repeated': (count) => ({ created: 1, data: list(count, () => ({ b64_json: PNG(1) })) }),
  'refused pictures': (count) => ({ created: 1, data: list(count, (at) => ({ error: { code: `c${at}`, message: 'no' } })) }),
  'finished calls': (count) => ({ output: list(count, call) }),
  'calls that failed': (count) => ({ output: list(count, (at) => ({ ...call(at), status: 'failed' })) }),
  'texts beside a picture': (count) => ({ output: [call(0), ...list(count, message)] }),
  'texts beside pictures': (count) => ({ output: [...list(count, call), ...list(count, message)] }),
  'pictures, and a long text of all of them': (count) => ({ data: list(count, pngOf), said: 'x '.repeat(count) }),
  'pictures, and members of all of them': (count) => ({ data: list(count, pngOf), ...record(count, 'x_', (at) => at) }),
};

const STREAMS: Readonly<Record<string, (count: number) => readonly object[]>> = {
  previews: (count) =>
    list(count, (at) => ({ type: 'image_generation.partial_image', partial_image_index: at, b64_json: PNG(at) })),
  'pictures that are told, then counted': (count) => [
    ...list(count, (at) => ({ type: 'image_generation.partial_succeeded', image_index: at, b64_json: PNG(at) })),
    { type: 'image_generation.completed', usage: { output_tokens: 9, total_tokens: 9 } },
  ],
  'calls, then all of them again': (count) => [
    ...list(count, (at) => done(call(at))),
    completed(list(count, (at) => ({ ...call(at), result: null }))),
  ],
  'calls that only the terminal has': (count) => [completed(list(count, call))],
  'texts beside a picture': (count) => [done(call(0)), ...list(count, (at) => done(message(at))), completed([])],
};

/** What cannot be read must be found out in linear time, too. */
function encoded(read: () => ImageAnswer | undefined): void {
  try {
    const answer = read();
    if (answer === undefined) return;
    encodeImageAnswer(answer, 1);
    encodeImageEvents('generation', answer, 1);
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown;
  }
}

const wholeOf = (upstream: ImageUpstream, name: string, body: (count: number) => object): Case => ({
  name: `whole picture of ${upstream.channelType}: ${name}`,
  work(count) {
    const text = JSON.stringify(body(count));
    return { json: [text], run: () => encoded(() => upstream.decodeWhole(text)) };
  },
});

const streamOf = (upstream: ImageUpstream, name: string, events: (count: number) => readonly object[]): Case => ({
  name: `stream of a picture of ${upstream.channelType}: ${name}`,
  work(count) {
    const texts = events(count).map((event) => JSON.stringify(event));
    return {
      json: texts,
      run: () =>
        encoded(() => {
          const stage = upstream.decodeEvents();
          const answers: ImageAnswer[] = [];
          for (const data of texts) stage.push({ event: undefined, data }, answers);
          stage.end(answers);
          return answers[0];
        }),
    };
  },
});

/** What upstreams refuse a picture with may quote what the client wrote. */
const REFUSALS: Readonly<Record<string, (count: number) => string>> = {
  'a quote that is not closed, and spaces': (count) => `"${' '.repeat(4 * count)}`,
  'quotes of three kinds': (count) => `"'\``.repeat(count),
  'quoted words': (count) => '"two words" '.repeat(count),
  'streams that are not supported, nearly': (count) => 'no stream '.repeat(count),
};

const refusalOf = (name: string, message: (count: number) => string): Case => ({
  name: `refusal of a picture: ${name}`,
  work(count) {
    const text = JSON.stringify({ error: { message: message(count) } });
    const refusal = new GatewayError('upstream_error', 'refused', { reason: 'http_status', upstream: { status: 400, text } });
    return { json: [text], run: () => void rejectsStreaming(refusal) };
  },
});

export const IMAGE_ANSWER_CASES: readonly Case[] = [
  ...[...IMAGE_UPSTREAMS.values()].flatMap((upstream) => [
    ...Object.entries(BODIES).map(([name, body]) => wholeOf(upstream, name, body)),
    ...Object.entries(STREAMS).map(([name, events]) => streamOf(upstream, name, events)),
  ]),
  ...Object.entries(REFUSALS).map(([name, message]) => refusalOf(name, message)),
];
