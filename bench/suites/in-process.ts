/** Suites without sockets: the stages, the codecs and their N × N table, the fused chain by traffic shape. In this process. */
import { Order } from '../../src/codecs/canonical/order.ts';
import { pipeAnswer, pipeFrames } from '../../src/codecs/pipeline.ts';
import { sealed } from '../../src/streams/seal.ts';
import { createSseFramer } from '../../src/streams/sse-encode.ts';
import { textFrames, tokens } from '../fixtures.ts';
import { convert, decode, DIALECTS, encode, MAX_EVENT_BYTES, pairOf, sseEventsOf } from '../harness/pipeline.ts';
import type { Row } from '../harness/statistics.ts';
import { beside, microsOf } from '../harness/timing.ts';
import { historyBody, type Shape, shapes, toolDeltas } from '../shapes.ts';

const UNIT = 'µs a stream of 100 events';

/** SSE decode, encode and the seal. Floor: the bytes decoded to text and encoded again. */
export function streams(rounds: number): Row[] {
  const rows: Row[] = [];
  for (const { name, reads } of [...shapes('chat'), toolDeltas(10_000)]) {
    const both = beside(
      () => void copyText(reads),
      () => void sseEventsOf(reads),
      rounds,
    );
    rows.push({ suite: 'streams', name: `SSE decode, ${name}`, unit: 'µs', ...both });
  }
  const events = sseEventsOf([Buffer.from(textFrames('chat', tokens(96)).join(''))]);
  const encoded = microsOf(() => void events.map(createSseFramer()).join(''), rounds).best;
  rows.push({ suite: 'streams', name: 'SSE encode', unit: UNIT, subject: encoded });
  const through = microsOf(() => {
    const voice = sealed(passing, String);
    const out: unknown[] = [];
    for (const event of events) voice.push([event], out);
  }, rounds).best;
  rows.push({ suite: 'streams', name: 'seal, one event a batch', unit: UNIT, subject: through });
  return rows;
}

const passing = {
  ended: false,
  push: (input: unknown, out: unknown[]) => void out.push(input),
  end: () => undefined,
  fail: () => undefined,
};

function copyText(reads: readonly Uint8Array[]): number {
  const text = new TextDecoder();
  let bytes = 0;
  for (const read of reads) bytes += Buffer.byteLength(text.decode(read, { stream: true }));
  return bytes;
}

/** Decode and encode of each dialect. Floor: `JSON.parse` of every event, or `JSON.stringify` of what was parsed. */
export function codecsAlone(rounds: number): Row[] {
  const rows: Row[] = [];
  for (const upstream of DIALECTS) {
    const events = sseEventsOf([Buffer.from(textFrames(upstream, tokens(96)).join(''))]);
    const texts = events.map(({ data }) => data).filter((data) => data !== '[DONE]');
    const parsed = texts.map((text): unknown => JSON.parse(text));
    const parse = (): void => void texts.map((text) => JSON.parse(text));
    const stringify = (): void => void parsed.map((json) => JSON.stringify(json));
    const own = pairOf(upstream, upstream);
    const decoded = beside(parse, () => void decode(own, events), rounds);
    rows.push({ suite: 'codecs', name: `decode ${upstream}`, unit: UNIT, ...decoded });
    const steps = decode(own, events);
    const ordered = microsOf(() => {
      const order = new Order();
      for (const step of steps) order.push(step, []);
    }, rounds).best;
    rows.push({ suite: 'codecs', name: `order and fold of ${upstream}`, unit: UNIT, subject: ordered });
    for (const client of DIALECTS) {
      const pair = pairOf(client, upstream);
      const encoded = beside(stringify, () => void encode(pair, steps), rounds);
      rows.push({ suite: 'codecs', name: `encode ${client} from ${upstream}`, unit: UNIT, ...encoded });
    }
  }
  rows.push(...histories(rounds));
  return rows;
}

/** The 200-turn history: decoded and encoded for another dialect in one turn of the event loop, so this is how long it blocks. */
function histories(rounds: number): Row[] {
  const text = historyBody(200, 1_000_000);
  return DIALECTS.filter((dialect) => dialect !== 'chat').map((dialect): Row => {
    const pair = pairOf('chat', dialect);
    const target = { ...pair.decoding, facts: {}, without: new Set<never>() };
    const { floor, subject, ratio } = beside(
      () => void JSON.stringify(JSON.parse(text)),
      () => {
        const request = pair.client.decodeRequest(text, JSON.parse(text), { open: () => undefined });
        pair.upstream.encodeRequest(request, target);
      },
      rounds,
    );
    return {
      suite: 'codecs',
      name: `200-turn history of 1 MB, chat to ${dialect}`,
      unit: 'ms of one turn',
      floor: floor / 1000,
      subject: subject / 1000,
      ratio,
      goal: 10,
      goalIs: 'subject',
    };
  });
}

/**
 * Bytes in to bytes out by shape, and the N × N table in full flow; fused. Floor: the bytes decoded to text and encoded again.
 */
export async function pipeline(rounds: number): Promise<Row[]> {
  const rows: Row[] = [];
  const measure = (name: string, shape: Shape, client: (typeof DIALECTS)[number], upstream: (typeof DIALECTS)[number]): void => {
    const pair = pairOf(client, upstream);
    const both = beside(
      () => void copyText(shape.reads),
      () => {
        for (const write of convert(pair, shape.reads)) Buffer.byteLength(write);
      },
      rounds,
    );
    rows.push({ suite: 'pipeline', name, unit: 'µs a stream', ...both });
  };
  for (const upstream of DIALECTS) {
    const [full] = shapes(upstream);
    if (full !== undefined) for (const client of DIALECTS) measure(`${upstream} to ${client}, full flow`, full, client, upstream);
  }
  const [, ...others] = shapes('chat');
  for (const shape of [...others.filter(({ events }) => events > 0), toolDeltas(10_000)]) {
    measure(`chat to messages, ${shape.name}`, shape, 'messages', 'chat');
  }
  rows.push(await piped(rounds));
  return rows;
}

/** The same stages, each in a pair of Web Streams: what fusing them saves. */
async function piped(rounds: number): Promise<Row> {
  const pair = pairOf('messages', 'chat');
  const [, paced] = shapes('chat');
  const reads = paced?.reads ?? [];
  const times: number[] = [];
  for (let round = 0; round < rounds * 20; round++) {
    const started = performance.now();
    const source = new ReadableStream<readonly Uint8Array[]>({
      start(controller) {
        for (const read of reads) controller.enqueue([read]);
        controller.close();
      },
    });
    const { steps } = pipeAnswer(source, pair.upstream.decodeEvents(pair.decoding), MAX_EVENT_BYTES);
    const out = pipeFrames(steps, pair.client.encodeEvents(pair.encoding), (thrown) => {
      throw thrown;
    });
    const frame = createSseFramer();
    for await (const frames of out) frames.map(frame).join('');
    times.push((performance.now() - started) * 1000);
  }
  const floor = microsOf(() => void convert(pair, reads), rounds).best;
  const subject = times.sort((a, b) => a - b)[times.length >> 2] ?? Number.NaN;
  return {
    suite: 'pipeline',
    name: 'four hops of Web Streams beside the fused chain, paced',
    unit: 'µs a stream',
    floor,
    subject,
    ratio: subject / floor,
  };
}
