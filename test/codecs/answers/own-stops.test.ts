/** Stop sequences that an upstream was not sent: the answer ends at the first of them, however it is cut into pieces. */
import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import fc from 'fast-check';
import { stoppedStep, stoppingDecoder } from '../../../src/codecs/answers/own-stops.ts';
import { StopMachine, stopTree } from '../../../src/codecs/answers/stop-tree.ts';
import type { CanonicalEvent, Step } from '../../../src/codecs/canonical/event.ts';
import type { EventDecoder } from '../../../src/codecs/codec.ts';
import { readWhole } from '../../../src/codecs/pipeline.ts';
import { fakeUpstream, jsonAnswer, openStream } from '../../support/fake-upstream.ts';
import { channel, eventually, MODELS, testGateway } from '../../support/test-gateway.ts';

const start: CanonicalEvent[] = [
  { type: 'response.start' },
  { type: 'item.start', index: 0, head: { kind: 'text', role: 'assistant' } },
];
const delta = (text: string): CanonicalEvent => ({ type: 'item.delta', index: 0, delta: { kind: 'text', text } });
const end = (text: string): CanonicalEvent[] => [
  { type: 'item.end', index: 0, status: 'completed', item: { kind: 'text', role: 'assistant', text, citations: [] } },
  { type: 'usage.report', usage: { input: 1, output: 9 } },
  { type: 'response.end', outcome: { status: 'completed', stop: 'end' } },
];

/** A decoder that gives these events, one a frame. */
function scripted(events: readonly CanonicalEvent[]): EventDecoder {
  const left = [...events];
  return {
    get ended() {
      return left.length === 0;
    },
    push: (_, out) => out.push({ events: left.splice(0, 1) }),
    end: () => undefined,
  };
}

/** What comes through, event by event. */
function through(events: readonly CanonicalEvent[], stops: readonly string[]): CanonicalEvent[] {
  const decoder = stoppingDecoder(scripted(events), stops);
  const steps: Step[] = [];
  while (!decoder.ended) decoder.push({ event: undefined, data: '' }, steps);
  return steps.flatMap((step) => step.events);
}

const said = (events: readonly CanonicalEvent[]): string =>
  events.map((event) => (event.type === 'item.delta' && event.delta.kind === 'text' ? event.delta.text : '')).join('');

/** In what pieces a text may come: every way to cut a short one. */
function* cuts(text: string): Generator<string[]> {
  for (let mask = 0; mask < 2 ** (text.length - 1); mask += 1) {
    const ends = [...text].flatMap((_, at) => (((mask >> at) & 1) === 1 ? [at + 1] : []));
    yield [...ends, text.length].map((end, at) => text.slice(ends[at - 1] ?? 0, end));
  }
}

describe('a stream', () => {
  it('ends in front of the sequence that is complete first, at every cut of its text', () => {
    for (const [text, stops, kept, sequence] of [
      ['one ENDtwo', ['END', 'two'], 'one ', 'END'],
      ['aabaab', ['aab'], '', 'aab'],
      ['xabcdy', ['bcdz', 'cd'], 'xab', 'cd'],
      ['xabcdy', ['abcd', 'cd'], 'x', 'abcd'],
    ] as const) {
      for (const pieces of cuts(text)) {
        const events = through([...start, ...pieces.map(delta), ...end(text)], stops);
        assert.equal(said(events), kept, pieces.join('|'));
        assert.ok(!events.some((event) => event.type === 'item.delta' && 'text' in event.delta && event.delta.text === ''));
        const { fold } = readWhole({ events });
        assert.deepEqual(fold.outcome, { status: 'completed', stop: 'stopSequence', stopSequence: sequence });
        const [first] = fold.whole({ status: 'completed', stop: 'end' }).items;
        assert.ok(first?.item.kind === 'text' && first.item.text === kept);
      }
    }
  });

  it('comes whole where it holds none, also the beginning of one', () => {
    // The end of one in front, and its beginning behind, are none together.
    for (const text of ['so EN it ', 'Dso EN']) {
      for (const pieces of cuts(text)) {
        const given = [...start, ...pieces.map(delta), ...end(text)];
        assert.deepEqual(through(given, ['END', 'itx']), given);
      }
    }
  });

  it('ends within what only the end of the text says', () => {
    const events = through([...start, delta('one '), ...end('one END two')], ['END']);
    assert.equal(said(events), 'one ');
    assert.equal(readWhole({ events }).fold.outcome?.status, 'completed');
  });

  it('closes what else is open, and keeps reasoning and the input of calls out of it', () => {
    const events = through(
      [
        { type: 'response.start' },
        { type: 'item.start', index: 0, head: { kind: 'reasoning' } },
        { type: 'item.delta', index: 0, delta: { kind: 'raw', text: 'END' } },
        { type: 'item.start', index: 1, head: { kind: 'text', role: 'assistant' } },
        { type: 'item.delta', index: 1, delta: { kind: 'text', text: 'aENDb' } },
      ],
      ['END'],
    );
    const { fold } = readWhole({ events });
    assert.deepEqual(fold.whole({ status: 'completed', stop: 'end' }).items, [
      { item: { kind: 'reasoning', raw: 'END' }, status: 'incomplete' },
      { item: { kind: 'text', role: 'assistant', text: 'a', citations: [] }, status: 'completed' },
    ]);
  });
});

test('citations in front of the cut are kept, whole and in a stream; those of what is cut off go with it', () => {
  const url = (start: number, end: number) => ({ kind: 'url' as const, url: 'https://a.example/', start, end });
  const citations = [url(0, 3), url(1, 9), url(8, 9)];
  const ended = (text: string): CanonicalEvent => ({
    ...{ type: 'item.end', index: 0, status: 'completed' },
    item: { kind: 'text', role: 'assistant', text, citations },
  });
  const citedIn = (events: readonly CanonicalEvent[]) => {
    const [item] = readWhole({ events }).fold.whole({ status: 'completed', stop: 'end' }).items;
    return item?.item.kind === 'text' ? item.item.citations : undefined;
  };
  const kept = [url(0, 3), { kind: 'url', url: 'https://a.example/' }];
  const last: CanonicalEvent = { type: 'response.end', outcome: { status: 'completed', stop: 'end' } };
  for (const events of [
    [...start, ended('one END two'), last],
    [...start, delta('one END two'), ended('one END two'), last],
  ])
    assert.deepEqual(citedIn(stoppedStep({ events }, ['END']).events), kept);
  const cite = (citation: (typeof citations)[number]): CanonicalEvent => ({
    ...{ type: 'item.delta', index: 0 },
    delta: { kind: 'citation', citation },
  });
  assert.deepEqual(citedIn(through([...start, delta('one '), ...citations.map(cite), delta('END')], ['END'])), kept);
});

test('a whole answer ends there, too, with its usage and its logprobs', () => {
  const logprobs = ['o', 'EN', 'D', 'x'].map((token) => ({ token, logprob: -1 }));
  const events: CanonicalEvent[] = [
    ...start,
    {
      type: 'item.end',
      index: 0,
      status: 'completed',
      item: { kind: 'text', role: 'assistant', text: 'oENDx', citations: [], logprobs },
    },
    { type: 'item.start', index: 1, head: { kind: 'text', role: 'assistant' } },
    { type: 'item.end', index: 1, status: 'completed', item: { kind: 'text', role: 'assistant', text: 'more', citations: [] } },
    { type: 'usage.report', usage: { input: 1, output: 9 } },
    { type: 'response.end', outcome: { status: 'completed', stop: 'end' } },
  ];
  const { fold } = readWhole(stoppedStep({ events }, ['END']));
  const whole = fold.whole({ status: 'completed', stop: 'end' });
  assert.deepEqual(
    whole.items.map(({ item }) => item),
    [{ kind: 'text', role: 'assistant', text: 'o', citations: [], logprobs: logprobs.slice(0, 1) }],
  );
  assert.deepEqual(whole.usage, { input: 1, output: 9 });
  const step = { events };
  assert.equal(stoppedStep(step, ['none']), step);
  assert.equal(stoppedStep(step, undefined), step);
});

test('many and long sequences are found in linear time', () => {
  const many = Array.from({ length: 2000 }, (_, at) => `${'a'.repeat(200)}${at}`);
  const machine = new StopMachine(stopTree(many));
  const started = performance.now();
  for (let piece = 0; piece < 2000; piece += 1) assert.equal(machine.read('a'.repeat(100)), undefined);
  assert.equal(machine.read('1999')?.sequence, `${'a'.repeat(200)}1`);
  assert.ok(performance.now() - started < 2000);
});

test('the first of many is found as by looking at every place', () => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 7 });
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 6 }), fc.array(word, { maxLength: 8 }), (stops, pieces) => {
      const machine = new StopMachine(stopTree(stops));
      const text = pieces.join('');
      const ending = Array.from(text, (_, at) => stops.filter((stop) => text.slice(0, at + 1).endsWith(stop)));
      const first = ending.find(({ length }) => length > 0) ?? [];
      const [longest] = first.toSorted((a, b) => b.length - a.length);
      assert.equal(pieces.map((piece) => machine.read(piece)).find((found) => found !== undefined)?.sequence, longest);
    }),
    { numRuns: 2000 },
  );
});

test('what nobody has written of a sequence takes nothing: two thousand answers wait for the longest ones', () => {
  const stops = ['x'.repeat(8_000), ...Array.from({ length: 80 }, (_, at) => `${at}${'y'.repeat(98)}`)];
  const before = process.memoryUsage().heapUsed;
  const machines = Array.from({ length: 2000 }, () => new StopMachine(stopTree(stops)));
  for (const machine of machines) assert.equal(machine.read('xxxx and more'), undefined);
  const taken = process.memoryUsage().heapUsed - before;
  assert.ok(taken < 100_000_000, `they take ${Math.round(taken / 1e6)} MB`);
});

const CHAT_ANSWER = {
  ...{ id: 'c', object: 'chat.completion', created: 1, model: 'up' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'taken' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 },
};

for (const [path, body, param] of [
  ['/v1/chat/completions', { messages: [{ role: 'user', content: 'hi' }], stop: 'x'.repeat(1_000_000) }, 'stop'],
  ['/v1/completions', { prompt: 'hi', stop: ['x'.repeat(16_000), 'y'.repeat(385)] }, 'stop'],
  ['/v1/messages', { messages: [{ role: 'user', content: 'hi' }], stop_sequences: ['x'.repeat(20_000)] }, 'stop_sequences'],
] as const) {
  test(`${path}: more than the gateway watches for is refused, and served where an upstream takes it itself`, async () => {
    await using upstream = await fakeUpstream(jsonAnswer(200, CHAT_ANSWER));
    const responses = channel(upstream.url, { type: 'responses' });
    await using gateway = await testGateway({ channels: [responses], models: MODELS });
    const request = { model: 'm', max_tokens: 9, ...body };
    const refused = await gateway.post(path, request);
    assert.equal(refused.status, 400);
    const { error } = JSON.parse(await refused.text());
    assert.match(error.message, /may have 16384 characters together/);
    if (path !== '/v1/messages') assert.deepEqual([error.code, error.param], ['unsupported_conversion', param]);
    assert.equal(upstream.requests.length, 0);
    const chat = channel(upstream.url, { id: 'two', type: 'chat_completion', priority: 1 });
    gateway.configure({ channels: [responses, chat], models: MODELS });
    const served = await gateway.post(path, request);
    assert.match(await served.text(), /taken/);
  });
}

const ASK = { model: 'm', max_tokens: 50, stop_sequences: ['s1', 's2', 's3', 's4', 'STOP'] };
const HI = [{ role: 'user', content: 'hi' }];
const chunk = (delta: object, finish: string | null = null): object => ({
  ...{ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'up' },
  choices: [{ index: 0, delta, finish_reason: finish }],
});

for (const stream of [true, false]) {
  test(`a chat upstream takes four: the fifth ends the answer of a messages client (${stream ? 'stream' : 'whole'})`, async () => {
    let asked: { stop?: string[] } = {};
    let isLetGo = false;
    await using chat = await fakeUpstream((request) => {
      asked = JSON.parse(request.body);
      if (!stream) {
        const message = { role: 'assistant', content: 'so far STOP and more' };
        const choices = [{ index: 0, message, finish_reason: 'stop' }];
        const usage = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 };
        jsonAnswer(200, { id: 'c', object: 'chat.completion', created: 1, model: 'up', choices, usage })(request);
        return;
      }
      const events = openStream(request.socket);
      request.socket.on('close', () => {
        isLetGo = true;
      });
      for (const text of ['so ', 'far ST', 'OP and']) events.raw(`data: ${JSON.stringify(chunk({ content: text }))}\n\n`);
    });
    await using gateway = await testGateway({ channels: [channel(chat.url, { type: 'chat_completion' })], models: MODELS });
    const answer = await (await gateway.post('/v1/messages', { ...ASK, stream, messages: HI })).text();
    assert.deepEqual(asked.stop, ['s1', 's2', 's3', 's4']);
    assert.match(answer, /"stop_reason":"stop_sequence","stop_sequence":"STOP"/);
    assert.doesNotMatch(answer.replace('"stop_sequence":"STOP"', ''), /STOP|OP|more/);
    if (stream) await eventually(() => isLetGo, 'the upstream is let go');
    await eventually(() => gateway.store.settled.length === 1, 'the row');
    assert.equal(gateway.store.settled[0]?.status, 'success');
    assert.ok((gateway.store.settled[0]?.usage?.output ?? 0) > 0, 'it is paid for');
  });
}
