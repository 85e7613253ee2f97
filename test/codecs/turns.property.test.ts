/**
 * Items side by side, in every order that the canonical tables allow: each client reads them as it reads the whole answer, the
 * first one live.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { CanonicalEvent, Step } from '../../src/codecs/canonical/event.ts';
import { fold, type Whole } from '../../src/codecs/canonical/fold.ts';
import { Order } from '../../src/codecs/canonical/order.ts';
import type { Frame } from '../../src/codecs/codec.ts';
import { type Answer, answer, eventsOf, fractions, stepsOf } from '../support/arbitraries/response.ts';
import { DIALECTS } from '../support/dialects.ts';
import { plain, type TwoSided } from '../support/laws.ts';
import {
  openForTests,
  bytesOf,
  decodeBytes,
  decodeContext,
  encodeSteps,
  ownerOf,
  responseContext,
  sealForTests,
  sseText,
} from '../support/wire.ts';
import { sized } from '../support/sampled.ts';

const picks = fc.array(fc.nat(), { minLength: 1, maxLength: 30 });

/**
 * A stream in which any item that may go on does, as `at` picks them. `responses` items do so piece by piece; texts and thoughts
 * of all other upstreams say no more when another item begins, and may only end late.
 */
function sideBySide(said: Answer, cuts: readonly number[], at: readonly number[], channelType: string): CanonicalEvent[] {
  const serial = eventsOf(said, cuts);
  const queues = said.items.map((_, index) => serial.filter((event) => 'index' in event && event.index === index));
  const events = serial.filter(({ type }) => type === 'response.start');
  const open = new Set<number>();
  for (let turn = 0, next = 0; next < queues.length || open.size > 0; turn += 1) {
    const choices = [...open, ...(next < queues.length ? [next] : [])];
    const chosen = choices[(at[turn % at.length] ?? 0) % choices.length] ?? 0;
    if (chosen === next) {
      if (channelType !== 'responses')
        for (const index of open)
          if (said.items[index]?.kind !== 'toolCall') events.push(...(queues[index]?.splice(0, queues[index].length - 1) ?? []));
      open.add(next);
      next += 1;
    }
    events.push(...(queues[chosen]?.splice(0, 1) ?? []));
    if (queues[chosen]?.length === 0) open.delete(chosen);
  }
  return [...events, ...serial.filter((event) => !('index' in event) && event.type !== 'response.start')];
}

/** The opaque values of an answer, without those of the gateway's own. */
function signedIn({ items }: Whole): readonly string[] {
  const values = items.flatMap(({ item }) => (item.kind === 'reasoning' && item.opaque !== undefined ? [item.opaque.value] : []));
  return values.filter((value) => openForTests(value)?.form !== 'unsigned').toSorted();
}

/**
 * What is said, by its kind. Side by side, a responses client reads whole items in the order of their first words; the others one
 * text.
 */
function sayings({ client }: TwoSided, whole: Whole): unknown {
  const items = whole.items.map(({ item }) => item);
  const texts = items.flatMap((item) => (item.kind === 'text' ? [item.text] : []));
  const refusals = items.flatMap((item) => (item.kind === 'refusal' ? [item.text] : []));
  const thoughts = items.flatMap((item) => (item.kind === 'reasoning' ? [item] : []));
  const raw = thoughts.map((item) => item.raw ?? '');
  const summaries = thoughts.flatMap((item) => item.summary ?? []);
  const read = (said: readonly string[]): unknown =>
    client.dialect === 'responses' ? said.filter((one) => one !== '').toSorted() : said.join('').replaceAll('\n', '');
  return plain({
    text: read(texts),
    refusal: read(refusals),
    raw: summaries.length > 0 && client.dialect === 'chat' ? '' : read(raw),
    summaries: read(summaries),
    // A messages client gets one that comes behind the text it belongs to only in front of another block.
    signed: client.dialect === 'messages' ? [] : signedIn(whole),
    calls: items.flatMap((item) => (item.kind === 'toolCall' ? [[item.callId, item.tool.name, item.toolType, item.input]] : [])),
    media: items.flatMap((item) => (item.kind === 'media' ? [JSON.stringify(item.media.source)] : [])).toSorted(),
    outcome: whole.outcome.status,
  });
}

/**
 * True for a piece that its client reads: arguments of a custom tool and a second face of a thought wait for their end in
 * messages.
 */
function isReadable({ client }: TwoSided, said: Answer, event: CanonicalEvent): boolean {
  if (event.type !== 'item.delta' || event.delta.kind === 'citation' || event.delta.text === '') return false;
  const item = said.items[event.index];
  if (client.dialect !== 'messages') return true;
  if (item?.kind === 'toolCall') return item.toolType === 'function';
  return item?.kind !== 'reasoning' || item.raw === undefined || event.delta.kind === 'raw';
}

for (const dialect of DIALECTS) {
  const { client, upstream } = dialect;
  for (const channelType of ['responses', 'chat_completion'] as const) {
    const owner = { channelType, scope: 'https://up.example', model: 'up-model' };
    const context = () => responseContext(client, owner);
    const answers = fc.tuple(answer(dialect.features, owner), fractions, picks);
    const name = `${channelType} items side by side, ${client.dialect} client`;

    test(`${name}: legal, and said as in the whole answer`, () => {
      fc.assert(
        fc.property(answers, ([said, cuts, at]) => {
          const events = sideBySide(said, cuts, at, channelType);
          const order = new Order();
          for (const step of stepsOf(events)) order.push(step, []);
          order.end();
          const frames = encodeSteps(client, stepsOf(events), context());
          assert.equal(dialect.check(frames), 'success');
          const heard = decodeBytes(upstream, [bytesOf(sseText(frames))], { owner: ownerOf(upstream) });
          assert.equal(heard.failure?.message, undefined);
          const body = client.encodeResponse(fold(events), undefined, context());
          const whole = fold(upstream.decodeResponse(body, decodeContext(ownerOf(upstream))).events);
          const streamed = fold(heard.events);
          assert.deepEqual(sayings(dialect, streamed), sayings(dialect, whole));
          const held = fold(events).items.flatMap(({ item }) =>
            'opaque' in item && item.opaque !== undefined ? [item.opaque] : [],
          );
          const signed = new Set([...signedIn(whole), ...held.flatMap((opaque) => [opaque.value, sealForTests(opaque)])]);
          assert.deepEqual(
            signedIn(streamed).filter((value) => !signed.has(value)),
            [],
          );
        }),
        { numRuns: sized(60, 300) },
      );
    });

    test(`${name}: the first item is live until a call interrupts it, and a break is legal anywhere`, () => {
      fc.assert(
        fc.property(answers, fc.nat(), ([said, cuts, at], cut) => {
          const events = sideBySide(said, cuts, at, channelType);
          const encoder = client.encodeEvents(context());
          let first: number | undefined;
          let isLive = true;
          for (const event of events) {
            const out: Frame[] = [];
            encoder.push({ events: [event] }, out);
            if (!('index' in event)) continue;
            const isCall = said.items[event.index]?.kind === 'toolCall';
            // Items of a responses stream begin with their first word.
            if (client.dialect !== 'responses' || isCall || event.type !== 'item.start') first ??= event.index;
            if (client.dialect === 'messages' && isCall && event.index !== first)
              isLive &&= said.items[first ?? 0]?.kind === 'toolCall';
            if (isLive && event.index === first && isReadable(dialect, said, event))
              assert.ok(out.length > 0, JSON.stringify(event));
          }
          const prefix: Step[] = stepsOf(events.slice(0, cut % events.length));
          assert.equal(dialect.check(encodeSteps(client, prefix, context())), 'failure');
        }),
        { numRuns: sized(60, 300) },
      );
    });
  }
}
