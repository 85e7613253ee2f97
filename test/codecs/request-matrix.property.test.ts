/** Laws of requests over every client dialect and every upstream dialect. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Item } from '../../src/codecs/canonical/item.ts';
import type { CanonicalRequest } from '../../src/codecs/canonical/request.ts';
import type { ClientCodec, UpstreamCodec } from '../../src/codecs/codec.ts';
import { UPSTREAMS } from '../../src/codecs/registry.ts';
import { type Talk, talk, WRITERS } from '../support/arbitraries/request.ts';
import { chat, DIALECTS, messages, responses } from '../support/dialects.ts';
import { refusalOf } from '../support/upstream-checks.ts';
import { openForTests, ownerOf, targetOf } from '../support/wire.ts';
import { sized } from '../support/sampled.ts';

function read(client: ClientCodec, text: string): CanonicalRequest {
  return client.decodeRequest(text, JSON.parse(text), { open: openForTests });
}

function write(client: ClientCodec, said: Talk): string {
  return JSON.stringify(WRITERS[client.dialect as keyof typeof WRITERS](said));
}

function encode(upstream: UpstreamCodec, request: CanonicalRequest): string {
  return upstream.encodeRequest(request, targetOf(ownerOf(upstream))).body;
}

/** What every dialect can say: words, calls and results in order, tools and controls. */
function common(request: CanonicalRequest): unknown {
  const { items, tools, maxOutputTokens, temperature, stream } = request;
  return {
    said: items.flatMap(saidBy),
    media: items.flatMap((item) => (item.kind === 'media' && item.role === 'user' ? [item.media.type] : [])),
    tools: tools.flatMap((tool) => (tool.kind === 'function' ? [[tool.tool.name, tool.description, tool.parameters]] : [])),
    format: request.format?.type,
    maxOutputTokens,
    temperature,
    stream,
    choice: request.toolChoice?.mode === 'auto' ? undefined : request.toolChoice,
  };
}

function saidBy(item: Item): unknown[] {
  switch (item.kind) {
    case 'text':
      return [[item.role === 'developer' ? 'system' : item.role, item.text]];
    case 'toolCall':
      return [['call', item.callId, item.tool.name, JSON.parse(item.input)]];
    case 'toolResult':
      return [
        [
          'result',
          item.callId,
          item.content.flatMap((part) => (part.kind === 'text' ? [part.text.replace(/^Error: /, '')] : [])).join(''),
        ],
      ];
    default:
      return [];
  }
}

for (const { client } of DIALECTS) {
  for (const upstream of UPSTREAMS) {
    test(`a ${client.dialect} request is taken by a strict ${upstream.dialect} upstream, made the same way twice`, () => {
      fc.assert(
        fc.property(talk, (said) => {
          const request = read(client, write(client, said));
          const body = encode(upstream, request);
          assert.equal(refusalOf(upstream.dialect, body), undefined, body);
          assert.equal(encode(upstream, request), body);
        }),
        { numRuns: sized(30, 150) },
      );
    });
  }

  test(`a ${client.dialect} request to an upstream of its own dialect keeps every byte but the gateway's`, () => {
    const { upstream } = DIALECTS.find((side) => side.client === client) ?? chat;
    fc.assert(
      fc.property(talk, fc.constantFrom(undefined, 1, '\t'), (said, indent) => {
        const json = {
          ...WRITERS[client.dialect as keyof typeof WRITERS](said),
          x_unknown: { x_exact: 1, '10': [1], '2': null },
        };
        const text = JSON.stringify({ ...json, stream: false }, null, indent).replace(/"x_exact": ?1/, '"x_exact": 1.0');
        assert.equal(encode(upstream, read(client, text)).replace('"up-model"', '"logical-model"'), text);
      }),
      { numRuns: sized(20, 100) },
    );
  });
}

/** A client lost calls and results of its history, and sent others late. */
const damage = fc.array(fc.record({ at: fc.nat(30), to: fc.nat(30) }), { maxLength: 6 });

for (const { client } of DIALECTS) {
  for (const upstream of UPSTREAMS) {
    // gemini also asks who signed a call of the current turn, which a damaged history cannot say: its own tests pair calls.
    if (upstream.dialect === client.dialect || upstream.dialect === 'gemini') continue;
    test(`a damaged ${client.dialect} history is mended for a strict ${upstream.dialect} upstream`, () => {
      fc.assert(
        fc.property(talk, damage, (said, blows) => {
          const request = read(client, write(client, said));
          const items = [...request.items];
          for (const { at, to } of blows) {
            const tools = items.filter(({ kind }) => kind === 'toolCall' || kind === 'toolResult');
            const item = tools[at % (tools.length + 1)];
            if (item === undefined) continue;
            items.splice(items.indexOf(item), 1);
            const first = 1 + items.findIndex((one) => one.kind === 'text' && one.role === 'user');
            if (to % 2 === 0) items.splice(first + (to % (items.length - first + 1)), 0, item);
          }
          items.push({ kind: 'text', role: 'user', text: 'go on', citations: [], turn: items.length });
          const { body } = upstream.encodeRequest({ ...request, items }, targetOf(ownerOf(upstream)));
          assert.equal(refusalOf(upstream.dialect, body), undefined, body);
        }),
        { numRuns: sized(20, 100) },
      );
    });
  }
}

for (const first of DIALECTS) {
  for (const second of DIALECTS) {
    for (const third of DIALECTS) {
      if (new Set([first, second, third]).size < 3) continue;
      const path = [first, second, third, first].map(({ client }) => client.dialect).join(' → ');
      test(`${path}: a request means the same after every conversion`, () => {
        fc.assert(
          fc.property(talk, (said) => {
            const start = read(first.client, write(first.client, simple(said)));
            let request = start;
            for (const next of [second, third, first]) request = read(next.client, encode(next.upstream, request));
            assert.deepEqual(common(request), common(start));
          }),
          { numRuns: sized(12, 60) },
        );
      });
    }
  }
}

/** The common subset: no images in results (chat shows them in a user message) and no system text where it would move. */
function simple(said: Talk): Talk {
  return {
    ...said,
    turns: said.turns.map((turn) => ({ ...turn, calls: turn.calls.map((call) => ({ ...call, image: false })) })),
  };
}

test('the dialects of this file are those of the matrix', () => {
  assert.deepEqual(DIALECTS, [chat, responses, messages]);
});

test('the simulated vendors refuse what is wrong, so that the laws above can fail', () => {
  for (const { dialect } of UPSTREAMS)
    assert.notEqual(refusalOf(dialect, '{"model":"m","contents":[],"messages":[]}'), undefined);
});
