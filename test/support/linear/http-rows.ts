/**
 * The linearity law over what is not a body of text: histories that are continued by id, what an upstream sends beside its
 * events, forms, frames of a WebSocket, headers. Each is asked of a gateway over a socket.
 */
import { createMultipartReader } from '../../../src/codecs/bodies/multipart-reader.ts';
import { itemTexts, NO_ITEMS, type PastTurn, pastTurn } from '../../../src/http/history/past-turn.ts';
import { joinList } from '../../../src/http/dispatch/upstream.ts';
import { clientIp } from '../../../src/http/request/client-ip.ts';
import { MessageMeter } from '../../../src/http/websocket/message-meter.ts';
import { ipRanges } from '../../../src/http/request/ip-ranges.ts';
import { wholeMessage } from '../fake-upstream.ts';
import type { Case, OwnBound, Work } from './growth.ts';
import { type Asked, frame, httpRig, OP, type RawSocket, type Rig, type UpstreamAnswer } from './http-rig.ts';
import { list } from './schema-shapes.ts';

/** Four times this is within the limits of whatever is asked. */
const own = (count: number): OwnBound => ({ count, times: 4, limit: 6 });
/** What should cost the same however much there is of the other. */
const flat = (count: number): OwnBound => ({ count, times: 4, limit: 2 });

const json = (value: unknown): UpstreamAnswer => ({ type: 'application/json', pieces: [JSON.stringify(value)] });
const MESSAGE = json(wholeMessage('hi'));

/** What runs first of a rig is compiled meanwhile, and says nothing of what the next costs. */
const WARM = 5;

/** A rig for one size, and what is done with it over and over. */
async function over(rig: Rig, run: () => Promise<unknown>): Promise<Work> {
  for (let count = 0; count < WARM; count += 1) await run();
  return {
    json: [],
    run: async () => {
      await run();
    },
    close: () => rig.close(),
  };
}

const asks = (rig: Rig, asked: Asked): Promise<Work> => over(rig, () => rig.ask(asked));

const OWNER = 'acct_1/key_1';
const item = (at: number): string => `{"type":"message","role":"user","content":"word ${at}"}`;
const said = (at: number): string =>
  `{"type":"message","id":"msg_${at}","role":"assistant","content":[{"type":"output_text","text":"word ${at}"}]}`;

/** The id of the newest of so many turns, as the gateway would have stored them. */
async function conversation(rig: Rig, turns: number, itemsOfTurn: number): Promise<string> {
  let last: PastTurn | undefined;
  for (let turn = 0; turn < turns; turn += 1) {
    const output = list(itemsOfTurn, (at) => said(turn * itemsOfTurn + at));
    const itemIds = list(itemsOfTurn, (at) => `msg_${turn * itemsOfTurn + at}`);
    last = pastTurn({ parent: last, input: itemTexts([item(turn)]), output: itemTexts(output), itemIds });
    await rig.gateway.running.gateway.memory.save({ id: `resp_mizu_${turn}`, owner: OWNER, turn: last });
  }
  return `resp_mizu_${turns - 1}`;
}

const HISTORIES: readonly Case[] = [
  ...(
    [
      ['turns', (rig: Rig, count: number) => conversation(rig, count, 1)],
      ['items of one turn', (rig: Rig, count: number) => conversation(rig, 1, count)],
    ] as const
  ).flatMap(([what, make]): Case[] => [
    {
      name: `history over HTTP: ${what}`,
      own: own(500),
      async work(count) {
        const rig = await httpRig('messages', MESSAGE);
        const previous = await make(rig, count);
        const body = JSON.stringify({ model: 'm', previous_response_id: previous, input: 'x' });
        return asks(rig, { path: '/v1/responses', body });
      },
    },
    {
      name: `history over a WebSocket: ${what}`,
      own: own(500),
      async work(count) {
        const rig = await httpRig('messages', STREAM([]));
        const previous = await make(rig, count);
        const create = { type: 'response.create', model: 'm', previous_response_id: previous, input: 'x' };
        const socket = await rig.socket();
        return over(rig, () => socket.until(frame(OP.text, JSON.stringify(create)), '"response.completed"'));
      },
    },
  ]),
  {
    name: 'history: items that are named by their ids',
    own: own(2000),
    async work(count) {
      const rig = await httpRig('messages', MESSAGE);
      await conversation(rig, 10, count / 10);
      const input = list(count, (at) => ({ type: 'item_reference', id: `msg_${at}` }));
      return asks(rig, { path: '/v1/responses', body: JSON.stringify({ model: 'm', input, store: false }) });
    },
  },
  {
    name: 'history: one more response beside so many others that were never continued',
    own: flat(1000),
    async work(count) {
      const rig = await httpRig('messages', MESSAGE);
      const { memory } = rig.gateway.running.gateway;
      const turn = pastTurn({ parent: undefined, input: itemTexts([item(0)]), output: NO_ITEMS });
      for (let at = 0; at < count; at += 1) await memory.save({ id: `resp_mizu_${at}`, owner: OWNER, turn: { ...turn } });
      return asks(rig, { path: '/v1/responses', body: '{"model":"m","input":"x"}' });
    },
  },
];

const event = (type: string, members: object = {}): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;
const START =
  event('message_start', { message: { ...wholeMessage(''), content: [], stop_reason: null } }) +
  event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }) +
  event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'hi' } });
const END =
  event('content_block_stop', { index: 0 }) +
  event('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 5 } }) +
  event('message_stop');

/** A messages stream with something in its middle. */
const STREAM = (between: readonly string[]): UpstreamAnswer => ({
  type: 'text/event-stream',
  pieces: [START, ...between, END],
});

const BESIDE_EVENTS: Readonly<Record<string, readonly [count: number, pieces: (count: number) => readonly string[]]>> = {
  comments: [20_000, (count) => [': keep-alive\n\n'.repeat(count)]],
  'comments, each a piece of its own': [4_000, (count) => list(count, () => ': keep-alive\n\n')],
  'comments without an end of their block': [100_000, (count) => [`${':\n'.repeat(count)}\n`]],
  'one long comment in pieces': [4_000, (count) => [':', ...list(count, () => 'keep-alive'), '\n\n']],
  'blank lines': [500_000, (count) => ['\n'.repeat(count)]],
  'carriage returns': [500_000, (count) => ['\r'.repeat(count)]],
  'pings of the protocol': [16_000, (count) => [event('ping').repeat(count)]],
  'fields that nobody reads': [4_000, (count) => [`${'id: 1\nretry: 1\nnobody: reads\n'.repeat(count)}\n`]],
  'lines of data in one event': [
    10_000,
    (count) => [`event: ping\ndata: {"type":"ping"\n${'data: \n'.repeat(count)}data: }\n\n`],
  ],
};

const COMMENTS: readonly Case[] = Object.entries(BESIDE_EVENTS).flatMap(([what, [least, between]]) =>
  ['/v1/messages', '/v1/chat/completions'].map(
    (path): Case => ({
      name: `stream of an upstream to ${path}: ${what}`,
      own: own(least),
      async work(count) {
        const rig = await httpRig('messages', STREAM(between(count)));
        const messages = [{ role: 'user', content: 'x' }];
        return asks(rig, { path, body: JSON.stringify({ model: 'm', max_tokens: 9, stream: true, messages }) });
      },
    }),
  ),
);

const BOUNDARY = 'a-boundary';
const part = (headers: string, content: string): string => `--${BOUNDARY}\r\n${headers}\r\n\r\n${content}\r\n`;
const field = (name: string, value: string): string => part(`content-disposition: form-data; name="${name}"`, value);
const picture = (bytes: string, more = ''): string =>
  part(`content-disposition: form-data; name="image[]"; filename="a.png"\r\ncontent-type: image/png${more}`, bytes);
const form = (...parts: readonly string[]): string =>
  `${field('model', 'm')}${field('prompt', 'a cat')}${parts.join('')}--${BOUNDARY}--\r\n`;
const headerLines = (count: number): string => list(count, (at) => `\r\nx-${at}: y`).join('');

interface Form {
  readonly count: number;
  readonly body: (count: number) => string;
  readonly status?: number;
}

/** Within the limits: 16 pictures, 100 parts, 8 KiB of headers for a part. */
const FORMS: Readonly<Record<string, Form>> = {
  pictures: { count: 4, body: (count) => form(picture('x'.repeat(200_000)).repeat(count)) },
  'parts of names that are no fields': {
    count: 24,
    body: (count) => form(...list(count, (at) => field(`name${at}`, 'x')), picture('x')),
  },
  'bytes of one part': { count: 2_000_000, body: (count) => form(picture('x'.repeat(count))) },
  'headers of one part': { count: 150, body: (count) => form(picture('x', headerLines(count))) },
  'bytes that begin a boundary again and again': {
    count: 50_000,
    body: (count) => form(picture(`\r\n--${BOUNDARY.slice(0, -1)}`.repeat(count))),
  },
  'bytes in front of the first boundary': { count: 2_000, body: (count) => `${'x'.repeat(count)}\r\n${form(picture('x'))}` },
  'bytes behind the last boundary': { count: 4_000_000, body: (count) => form(picture('x')) + 'x'.repeat(count) },
};

const MULTIPART_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;
const IMAGE = json({ created: 1, data: [{ b64_json: 'aGk=' }], usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } });

const OVER_HTTP: readonly Case[] = Object.entries(FORMS).map(([what, { count: least, body, status }]) => ({
  name: `form: ${what}`,
  own: own(least),
  async work(count) {
    const rig = await httpRig('openai_image', IMAGE);
    const asked = { path: '/v1/images/edits', body: Buffer.from(body(count)), type: MULTIPART_TYPE };
    return asks(rig, status === undefined ? asked : { ...asked, status });
  },
}));

/** The reader alone, with more parts than a request may have. */
const READER: readonly Case[] = (
  [
    ['parts', (count: number) => [form(...list(count, (at) => field(`name${at}`, 'x')))]],
    ['tiny pieces', (count: number) => form(picture('x'.repeat(count))).match(/.{1,3}/gs) ?? []],
    ['pieces that end within a boundary', (count: number) => [form(picture(`\r\n--${BOUNDARY}`.slice(0, -1).repeat(count)))]],
  ] as const
).map(([what, pieces]) => ({
  name: `form reader: ${what}`,
  work(count) {
    const chunks = pieces(count).map((text) => Buffer.from(text));
    return {
      json: [],
      run() {
        const limits = { maxBytes: 2 ** 30, maxParts: 2 ** 30 };
        const reader = createMultipartReader(BOUNDARY, limits);
        for (const chunk of chunks) reader.push(chunk);
        if (reader.end().length === 0) throw new Error('a form has parts');
      },
    };
  },
}));

interface Frames {
  readonly count: number;
  readonly bytes: (count: number) => Buffer;
  /** Frames that come back. */
  readonly answers: (count: number) => number;
}

/** A message has at most 1,024 fragments. */
const FRAMES: Readonly<Record<string, Frames>> = {
  'tiny messages that are refused': {
    count: 2000,
    bytes: (count) => Buffer.concat(list(count, () => frame(OP.text, '{}'))),
    answers: (count) => count,
  },
  'tiny messages that need no answer': {
    count: 2000,
    bytes: (count) =>
      Buffer.concat([...list(count, () => frame(OP.text, '{"type":"response.processed"}')), frame(OP.text, '{}')]),
    answers: () => 1,
  },
  pings: {
    count: 1000,
    bytes: (count) => Buffer.concat(list(count, () => frame(OP.ping, 'x'))),
    answers: (count) => count,
  },
  'fragments of one message': {
    count: 255,
    bytes: (count) =>
      Buffer.concat([frame(OP.text, '{"x":"', false), ...list(count, () => frame(OP.more, 'x', false)), frame(OP.more, '"}')]),
    answers: () => 1,
  },
  'fragments of one message, each with a ping behind it': {
    count: 255,
    bytes: (count) =>
      Buffer.concat([
        frame(OP.text, '{"x":"', false),
        ...list(count, () => Buffer.concat([frame(OP.more, 'x', false), frame(OP.ping, '')])),
        frame(OP.more, '"}'),
      ]),
    answers: (count) => count + 1,
  },
};

const SOCKETS: readonly Case[] = [
  ...Object.entries(FRAMES).map(
    ([what, { count: least, bytes, answers }]): Case => ({
      name: `frames: ${what}`,
      own: own(least),
      async work(count) {
        const rig = await httpRig('messages', MESSAGE);
        const socket: RawSocket = await rig.socket();
        const sent = bytes(count);
        return over(rig, () => socket.exchange(sent, answers(count)));
      },
    }),
  ),
  {
    name: 'frames: pieces of a message that is not finished, as they are counted',
    work(count) {
      const piece = Buffer.from('x');
      const first = frame(OP.text, 'x'.repeat(60_000), false);
      return {
        json: [],
        run() {
          const meter = new MessageMeter();
          meter.push(first);
          for (let at = 0; at < count; at += 1) meter.push(piece);
          if (meter.unfinished === 0) throw new Error('it is not finished');
        },
      };
    },
  },
];

/** Within 32 KiB, and the thousand headers that Node reads. */
const HEADERS: Readonly<Record<string, readonly [count: number, headers: (count: number) => readonly string[]]>> = {
  many: [240, (count) => list(count, (at) => [`x-${at}`, 'y']).flat()],
  'one name again and again': [240, (count) => list(count, () => ['x-again', 'y']).flat()],
  'one that is long': [7_000, (count) => ['x-long', 'y'.repeat(count)]],
  'x-forwarded-for, all of it trusted': [700, (count) => ['x-forwarded-for', list(count, () => '127.0.0.1').join(',')]],
  'forwarded, an element each': [60, (count) => ['forwarded', list(count, () => 'for=127.0.0.1;by=x').join(',')]],
  'forwarded, one quoted string': [3_000, (count) => ['forwarded', `for="${'\\x'.repeat(count)}"`]],
  'anthropic-beta, a name each': [700, (count) => ['anthropic-beta', list(count, (at) => `beta-${at}`).join(',')]],
  'tracestate, a vendor each': [700, (count) => ['tracestate', list(count, (at) => `v${at}=x`).join(',')]],
};

const TRUSTED = ipRanges(['127.0.0.0/8']);

const READERS_OF_HEADERS: Readonly<Record<string, (count: number) => () => unknown>> = {
  'x-forwarded-for': (count) => {
    const headers = { 'x-forwarded-for': list(count, () => '127.0.0.1').join(' , ') };
    return () => clientIp('127.0.0.1', headers, TRUSTED);
  },
  'x-forwarded-for, of blanks': (count) => {
    const headers = { 'x-forwarded-for': `1.1.1.1${' '.repeat(count * 10)}x` };
    return () => clientIp('127.0.0.1', headers, TRUSTED);
  },
  'forwarded, blanks in a pair': (count) => {
    const headers = { forwarded: `for=127.0.0.1${' \t'.repeat(count * 10)}x` };
    return () => clientIp('127.0.0.1', headers, TRUSTED);
  },
  'forwarded, a quoted string without its end': (count) => {
    const headers = { forwarded: `for="${'\\"x'.repeat(count * 10)}` };
    return () => clientIp('127.0.0.1', headers, TRUSTED);
  },
  'anthropic-beta, added to': (count) => {
    const given = list(count, (at) => `beta-${at}`).join(',');
    return () => joinList(given, given);
  },
};

const HEADER_CASES: readonly Case[] = [
  ...Object.entries(HEADERS).map(
    ([what, [least, headers]]): Case => ({
      name: `headers: ${what}`,
      own: own(least),
      async work(count) {
        const rig = await httpRig('messages', MESSAGE, { trusted_proxies: ['127.0.0.0/8'] });
        const body = '{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}]}';
        return asks(rig, { path: '/v1/messages', body, headers: headers(count) });
      },
    }),
  ),
  ...Object.entries(READERS_OF_HEADERS).map(
    ([what, reader]): Case => ({
      name: `a header as it is read: ${what}`,
      work: (count) => {
        const read = reader(count);
        return { json: [], run: () => void read() };
      },
    }),
  ),
];

export const SOCKET_CASES: readonly Case[] = [...HISTORIES, ...COMMENTS, ...OVER_HTTP, ...READER, ...SOCKETS, ...HEADER_CASES];
