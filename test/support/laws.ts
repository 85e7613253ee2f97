/**
 * The laws that every codec obeys (design: "Tests as documents"). Each law registers one property test; a failing one prints its
 * seed and path, and the shrunk input becomes a case. Laws 8 (money) and 9 (tables) live with the store and the tables.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Dialect } from '../../src/codecs/canonical/dialect.ts';
import { GatewayError } from '../../src/codecs/canonical/error.ts';
import type { Step } from '../../src/codecs/canonical/event.ts';
import { fold, type Whole } from '../../src/codecs/canonical/fold.ts';
import type { OutputItem } from '../../src/codecs/canonical/item.ts';
import type { Owner } from '../../src/codecs/canonical/opaque.ts';
import { UNSIGNED } from '../../src/codecs/messages/message-parts.ts';
import type { ClientCodec, Frame, OutFrame, UpstreamCodec } from '../../src/codecs/codec.ts';
import { type Framing, readWhole } from '../../src/codecs/pipeline.ts';
import { singleFrames } from './runs.ts';
import { type Answer, answer, eventsOf, fractions, type ResponseFeatures, stepsOf } from './arbitraries/response.ts';
import {
  bytesOf,
  cutBytes,
  decodeBytes,
  encodeSteps,
  meaning,
  openForTests,
  ownerOf,
  requestOf,
  responseContext,
  sseText,
} from './wire.ts';
import { sized } from './sampled.ts';

/** A dialect that upstreams speak, with a writer of the bytes that they would send. */
export interface UpstreamSide {
  readonly upstream: UpstreamCodec;
  /** Everything that the dialect can say without loss. */
  readonly features: ResponseFeatures;
  /** Declared losses of laws 4 and 5: what is compared of an answer in this dialect, where it cannot say all of it. */
  readonly comparable?: (whole: Whole) => unknown;
  /** The bytes that an upstream of this dialect sends for an answer. Opaque values are written raw, as a vendor would. */
  readonly write: (said: Answer, cuts: readonly number[], interleave: boolean) => Uint8Array;
  /** Where the dialect's terminal signal begins: before it, nothing may end well. */
  readonly terminal: RegExp | ((bytes: Uint8Array) => number);
  /** How its events are framed, where that is not SSE. */
  readonly framing?: Framing;
  /** The events of {@link framing} for the same events as SSE. */
  readonly framed?: (sse: Uint8Array) => Uint8Array;
  /** What the tests call it; absent: its dialect. */
  readonly name?: string;
}

/** A dialect that is spoken on both sides: its own client encoder writes the bytes that its upstream decoder reads. */
export interface TwoSided extends UpstreamSide {
  readonly client: ClientCodec;
  /** The dialect's own order over frames; throws when they break it. Returns how the stream ended. `isNative`: spliced frames. */
  readonly check: (frames: readonly Frame[], isNative?: boolean) => StreamEnding;
}
export type StreamEnding = 'success' | 'failure';

const RUNS = sized(20, 150);

/** What an upstream would send, in the words of the dialect's own client encoder. */
export function writtenBy(client: ClientCodec, upstream: UpstreamCodec): UpstreamSide['write'] {
  const owner = ownerOf(upstream);
  return (said, cuts, interleave) => {
    const context = responseContext(client, owner, { seal: (opaque) => opaque.value, model: 'up-model' });
    return bytesOf(sseText(encodeSteps(client, stepsOf(eventsOf(said, cuts, interleave)), context)));
  };
}

/** What a request of this dialect must ask for, so that everything in the answer counts. */
const asking = (dialect: Dialect) => ({ request: requestOf(dialect, { logprobs: { top: 20 } }) });

export function nameOf({ name, upstream }: UpstreamSide): string {
  return name ?? upstream.dialect;
}

/** `client`: who asks; for its own dialect a decoder keeps what it read in its own form. */
function decodeFrom(side: UpstreamSide, chunks: Iterable<Uint8Array>, client?: TwoSided) {
  return decodeBytes(side.upstream, chunks, asking(client?.client.dialect ?? 'chat'), side.framing);
}

function arbitraryAnswer(dialect: UpstreamSide): fc.Arbitrary<Answer> {
  return answer(dialect.features, ownerOf(dialect.upstream));
}

export function lawCutsDoNotMatter(dialect: UpstreamSide): void {
  test(`law 1: any cut of ${nameOf(dialect)} bytes gives the same events`, () => {
    fc.assert(
      fc.property(arbitraryAnswer(dialect), fractions, fc.boolean(), fractions, (said, cuts, interleave, byteCuts) => {
        const bytes = dialect.write(said, cuts, interleave);
        const whole = decodeFrom(dialect, [bytes]);
        const pieces = decodeFrom(dialect, cutBytes(bytes, byteCuts));
        assert.deepEqual(pieces.events, whole.events);
        assert.equal(pieces.failure?.message, whole.failure?.message);
        const single = decodeBytes(
          dialect.upstream,
          [...bytes.subarray(0, 4000)].map((byte) => Uint8Array.of(byte)),
          {},
          dialect.framing,
        );
        assert.deepEqual(single.events, decodeFrom(dialect, [bytes.subarray(0, 4000)]).events);
      }),
      { numRuns: sized(20, 40) },
    );
  });
}

/** Arbitrary damage: bytes removed, repeated or replaced in a valid stream, or garbage from the start. */
export function damaged(dialect: UpstreamSide): fc.Arbitrary<Uint8Array> {
  const valid = fc.tuple(arbitraryAnswer(dialect), fractions).map(([said, cuts]) => dialect.write(said, cuts, false));
  return fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.string({ maxLength: 200 }).map((value) => bytesOf(`data: ${value}\n\n`)),
    fc
      .tuple(valid, fc.double({ min: 0, max: 1, noNaN: true }), fc.nat(40), fc.uint8Array({ maxLength: 12 }))
      .map(([bytes, at, remove, insert]) => {
        const start = Math.floor(at * bytes.length);
        return Uint8Array.from([...bytes.subarray(0, start), ...insert, ...bytes.subarray(start + remove)]);
      }),
    fc.tuple(valid, valid).map(([a, b]) => Uint8Array.from([...a, ...b])),
  );
}

export function lawAlwaysSealed(upstream: UpstreamSide, client: TwoSided): void {
  test(`laws 2 and 10: whatever a ${nameOf(upstream)} upstream sends, a ${client.client.dialect} client gets a legal stream with one ending and documented errors`, () => {
    fc.assert(
      fc.property(damaged(upstream), (bytes) => {
        const decoded = decodeFrom(upstream, [bytes], client);
        if (decoded.failure !== undefined) assert.equal(decoded.failure.blame, 'upstream');
        const frames = encodeSteps(
          client.client,
          decoded.steps,
          responseContext(client.client, ownerOf(upstream.upstream)),
          decoded.failure,
        );
        const ending = client.check(frames, upstream.upstream.dialect === client.client.dialect);
        if (decoded.failure !== undefined) assert.equal(ending, 'failure');
      }),
      { numRuns: RUNS },
    );
  });
}

export function lawNoSuccessFromFailure(upstream: UpstreamSide, client: TwoSided): void {
  test(`law 3: no proper prefix of a ${nameOf(upstream)} stream ends well for a ${client.client.dialect} client`, () => {
    fc.assert(
      fc.property(arbitraryAnswer(upstream), fractions, fc.double({ min: 0, max: 1, noNaN: true }), (said, cuts, at) => {
        const bytes = upstream.write(said, cuts, false);
        const terminal = terminalStart(bytes, upstream.terminal);
        const decoded = decodeFrom(upstream, [bytes.subarray(0, Math.floor(at * terminal))], client);
        assert.ok(decoded.failure !== undefined, 'a truncated stream was accepted');
        const frames = encodeSteps(
          client.client,
          decoded.steps,
          responseContext(client.client, ownerOf(upstream.upstream)),
          decoded.failure,
        );
        assert.equal(client.check(frames), 'failure');
      }),
      { numRuns: RUNS },
    );
  });
}

export function lawEndingsCanBeTakenBack(upstream: UpstreamSide, client: TwoSided): void {
  const images = upstream.features.images === true && client.features.images === true;
  const spokenByBoth = answer({ ...upstream.features, images }, ownerOf(upstream.upstream));
  test(`laws 2 and 3: a good ending for a ${client.client.dialect} client, made of a ${nameOf(upstream)} stream, can be taken back`, () => {
    fc.assert(
      fc.property(spokenByBoth, fractions, fc.boolean(), (said, cuts, isWhole) => {
        const { steps, events } = decodeFrom(upstream, [upstream.write(said, cuts, false)], client);
        const encoder = client.client.encodeEvents(responseContext(client.client, ownerOf(upstream.upstream)));
        const sent: OutFrame[] = [];
        // What stands before the ending may be in hand with it, or long gone.
        let batch: OutFrame[] = [];
        for (const step of isWhole ? readWhole({ events }).steps : steps) {
          sent.push(...batch);
          batch = [];
          encoder.push(step, batch);
        }
        const isNative = !isWhole && upstream.upstream.dialect === client.client.dialect;
        assert.equal(client.check(singleFrames([...sent, ...batch]), isNative), 'success');
        const failure = new GatewayError('store_unavailable', 'not written');
        encoder.failInstead(failure, batch);
        assert.ok(encoder.ended);
        const told = singleFrames([...sent, ...batch]);
        assert.equal(client.check(told, isNative), 'failure');
        assert.match(told.at(-1)?.data ?? '', /store_unavailable/);
      }),
      { numRuns: RUNS },
    );
  });
}

function terminalStart(bytes: Uint8Array, terminal: UpstreamSide['terminal']): number {
  if (typeof terminal === 'function') return terminal(bytes);
  const text = Buffer.from(bytes).toString('latin1');
  return [...text.matchAll(terminal)].at(-1)?.index ?? bytes.length;
}

/** Law 4 over a pair: a whole answer equals the folded stream, as a client of the dialect would read both. */
export function lawWholeIsFold(upstream: UpstreamSide, client: TwoSided): void {
  test(`law 4: whole = fold(stream), ${nameOf(upstream)} upstream, ${client.client.dialect} client`, () => {
    fc.assert(
      fc.property(arbitraryAnswer(upstream), fractions, fc.boolean(), (said, cuts, interleave) => {
        const owner = ownerOf(upstream.upstream);
        const decoded = decodeFrom(upstream, [upstream.write(said, cuts, interleave)], client);
        assert.equal(decoded.failure, undefined);
        const frames = encodeSteps(client.client, decoded.steps, responseContext(client.client, owner));
        let body: string;
        try {
          body = client.client.encodeResponse(fold(decoded.events), undefined, responseContext(client.client, owner));
        } catch (error) {
          assert.ok(error instanceof GatewayError && error.code === 'response_not_representable', String(error));
          assert.equal(client.check(frames), 'failure');
          return;
        }
        assert.equal(client.check(frames), 'success');
        const streamed = decodeBytes(client.upstream, [bytesOf(sseText(frames))], { owner: ownerOf(client.upstream) });
        assert.equal(streamed.failure, undefined);
        const context = {
          owner: ownerOf(client.upstream),
          request: requestOf('chat'),
          toolNames: { toWire: () => '', fromWire: (name: string) => ({ name }) },
          options: {},
          mint: () => 'x',
        };
        const whole = fold(client.upstream.decodeResponse(body, context).events);
        const compare = comparison(upstream, client);
        assert.deepEqual(compare(whole), compare(fold(streamed.events)));
      }),
      { numRuns: RUNS },
    );
  });
}

/** Of a pair, what the dialect that says less can say. */
function comparison(upstream: UpstreamSide, client: UpstreamSide): (whole: Whole) => unknown {
  const compare = client.comparable ?? upstream.comparable ?? meaning;
  return (whole) => plain(compare(whole));
}

/**
 * A value without the facts of its owner, as JSON holds it, and without the envelopes in which the gateway itself signs
 * reasoning.
 */
export function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, member: unknown) => {
      if (key === 'owner' || key === 'itemId' || key === 'form') return undefined;
      return key === 'opaque' && isUnsigned(member) ? undefined : member;
    }),
  );
}

/** Opened, or as a client holds it. */
function isUnsigned(opaque: unknown): boolean {
  const { form, value } = opaque as { readonly form?: string; readonly value?: string };
  if (form === UNSIGNED || /^\{"(raw|summary)":/.test(value ?? '')) return true;
  return value?.startsWith('mz2.') === true && openForTests(value)?.form === UNSIGNED;
}

/** Messages clients take the last block as the answer, so that what signs a text at the end is a declared loss. */
function endsWithText(frames: readonly Frame[]): boolean {
  const last = frames.findLast(({ event }) => event === 'content_block_start');
  return last?.data.includes('"content_block":{"type":"text"') ?? false;
}

/** Law 5: what a dialect says it also understands, less what `normalise` declares. */
export function lawRoundTrip(dialect: UpstreamSide): void {
  test(`law 5: decode(encode(answer)) = answer for ${nameOf(dialect)}`, () => {
    fc.assert(
      fc.property(arbitraryAnswer(dialect), fractions, (said, cuts) => {
        const decoded = decodeFrom(dialect, [dialect.write(said, cuts, false)]);
        assert.equal(decoded.failure?.message, undefined);
        const compare = comparison(dialect, dialect);
        const expected = dialect.upstream.dialect === 'messages' ? endingWithText(said) : said;
        assert.deepEqual(compare(fold(decoded.events)), compare(fold(eventsOf(expected))));
      }),
      { numRuns: RUNS },
    );
  });
}

/** Without what only signs, behind the last text: our encoder of messages leaves it out. */
function endingWithText(said: Answer): Answer {
  const isOnlySigned = (item: OutputItem): boolean =>
    item.kind === 'reasoning' && (item.raw ?? '') === '' && (item.summary ?? []).every((part) => part === '');
  const end = said.items.findLastIndex((item) => !isOnlySigned(item));
  const last = said.items[end];
  return last?.kind === 'text' || last?.kind === 'refusal' ? { ...said, items: said.items.slice(0, end + 1) } : said;
}

/** Law 7: an opaque value reaches clients sealed, complete, and in no other way. */
export function lawOpaqueMeansOpaque(upstream: UpstreamSide, client: TwoSided): void {
  test(`law 7: opaque values of a ${nameOf(upstream)} upstream reach a ${client.client.dialect} client only inside envelopes, whole`, () => {
    fc.assert(
      fc.property(answer({ ...upstream.features, opaque: true }, ownerOf(upstream.upstream)), fractions, (said, cuts) => {
        const owner: Owner = ownerOf(upstream.upstream);
        const decoded = decodeFrom(upstream, [upstream.write(said, cuts, false)], client);
        assert.equal(decoded.failure, undefined);
        const frames = encodeSteps(client.client, decoded.steps, responseContext(client.client, owner));
        const sent = sseText(frames);
        const ended = client.check(frames);
        const arrived = [...sent.matchAll(/mz2\.[\w-]+/g)].map(([envelope]) => openForTests(envelope)?.value);
        assert.ok(!arrived.includes(undefined), 'a cut envelope');
        for (const step of decoded.steps) {
          for (const event of step.events) {
            if (event.type !== 'item.end' || !('opaque' in event.item) || event.item.opaque === undefined) continue;
            const { value } = event.item.opaque;
            // What the client's dialect refuses ends the stream: later items are never said.
            const isLost = !arrived.includes(value) && !(client.client.dialect === 'messages' && endsWithText(frames));
            if (ended === 'success') assert.ok(!isLost, `lost: ${value}`);
            assert.ok(!sent.includes(value), `a raw opaque value reached the client: ${value}`);
          }
        }
      }),
      { numRuns: RUNS },
    );
  });
}

/** Law 11: however the deltas of parallel tool calls interleave, the calls are the same. */
export function lawInterleavingDoesNotMatter(upstream: UpstreamSide, client: TwoSided): void {
  test(`law 11: interleaved parallel calls of a ${nameOf(upstream)} upstream reach a ${client.client.dialect} client whole`, () => {
    fc.assert(
      fc.property(arbitraryAnswer(upstream), fractions, (said, cuts) => {
        const owner = ownerOf(upstream.upstream);
        const asEvents = (interleave: boolean) => callsOf(client, stepsOf(eventsOf(said, cuts, interleave)), owner);
        assert.deepEqual(asEvents(true), asEvents(false));
        const asBytes = (interleave: boolean) => {
          const { steps, failure } = decodeFrom(upstream, [upstream.write(said, cuts, interleave)], client);
          assert.equal(failure, undefined);
          return callsOf(client, steps, owner);
        };
        assert.deepEqual(asBytes(true), asBytes(false));
      }),
      { numRuns: RUNS },
    );
  });
}

/** The calls that a client of the dialect reads. */
function callsOf(client: TwoSided, steps: readonly Step[], owner: Owner): unknown {
  const frames = encodeSteps(client.client, steps, responseContext(client.client, owner));
  client.check(frames, steps[0]?.native?.dialect === client.client.dialect);
  return decodeBytes(client.upstream, [bytesOf(sseText(frames))]).events.flatMap((event) =>
    event.type === 'item.end' && event.item.kind === 'toolCall'
      ? [[event.item.callId, event.item.tool.name, event.item.input]]
      : [],
  );
}
