import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import type { Item, Part as ResultPart, OutputItem } from '../../../src/codecs/canonical/item.ts';
import type { JsonObject } from '../../../src/codecs/canonical/json.ts';
import type { Opaque } from '../../../src/codecs/canonical/opaque.ts';
import type { CanonicalRequest, Tool } from '../../../src/codecs/canonical/request.ts';
import { geminiUpstream } from '../../../src/codecs/gemini/index.ts';
import { GENERATIVE_JSON_SCHEMA, lowerSchema } from '../../../src/codecs/schemas/lowering.ts';
import { atOnce } from '../../../src/codecs/steps.ts';
import { chunkOf, decodeStream, foldStream, foldWhole, OWNER, requestOf, targetOf } from './support.ts';
import { checkBody, checkSchema } from './wire-rules.ts';

const words = fc.string({ unit: 'grapheme', maxLength: 8 });
const name = fc.constantFrom('find', 'mcp/find', 'a b', '1st', 'x'.repeat(80), '__proto__');
const id = fc.constantFrom('c1', 'c2', 'c3', 'call_4');
const form = fc.constantFrom(
  undefined,
  'text',
  'text:1:2',
  'text:0:0',
  'text:9:4',
  'thought',
  'thought+empty',
  'functionCall',
  'inlineData',
  'empty',
  '{"type":"reasoning.encrypted"}',
);
const opaque: fc.Arbitrary<Opaque> = fc
  .record({ form, itemId: fc.option(id, { nil: undefined }), isMine: fc.boolean(), n: fc.nat(99) })
  .map((made) => ({
    owner: made.isMine ? OWNER : { ...OWNER, channelType: 'responses' },
    value: `${made.isMine ? 'mine' : 'foreign'}${made.n}`,
    ...(made.form === undefined ? {} : { form: made.form }),
    ...(made.itemId === undefined ? {} : { itemId: made.itemId }),
  }));
const sealed = fc.option(opaque, { nil: undefined }).map((value) => (value === undefined ? {} : { opaque: value }));
const media = fc.constant({ type: 'image', source: { from: 'inline', mime: 'image/png', data: 'AAAA' } } as const);
const resultPart: fc.Arbitrary<ResultPart> = fc.oneof(
  words.map((text) => ({ kind: 'text', text }) as const),
  media.map((one) => ({ kind: 'media', media: one }) as const),
);
const tool = name.map((one) => ({ name: one }));

const item: fc.Arbitrary<Item> = fc.oneof(
  fc
    .record({ role: fc.constantFrom('system', 'developer', 'user', 'user', 'assistant'), text: words, sealed })
    .map(
      ({ role, text, sealed: extra }) =>
        ({ kind: 'text', role, text, citations: [], ...(role === 'assistant' ? extra : {}) }) as Item,
    ),
  fc.record({ text: words }).map(({ text }) => ({ kind: 'refusal', text }) as const),
  fc
    .record({ summary: fc.array(words, { maxLength: 2 }), raw: words, sealed })
    .map(({ summary, raw, sealed: extra }) => ({ kind: 'reasoning', summary, raw, ...extra }) as const),
  fc
    .record({ callId: id, tool, input: fc.json().map((text) => `{"v":${text}}`), sealed })
    .map(({ sealed: extra, ...call }) => ({ kind: 'toolCall', toolType: 'function', ...call, ...extra }) as const),
  fc
    .record({ callId: id, content: fc.array(resultPart, { maxLength: 2 }), isError: fc.boolean() })
    .map((result) => ({ kind: 'toolResult', toolType: 'function', ...result }) as const),
  fc
    .record({ role: fc.constantFrom('user', 'assistant'), media, sealed })
    .map(({ role, media: one, sealed: extra }) => ({ kind: 'media', role, media: one, ...extra }) as Item),
  fc.constant({ kind: 'native', dialect: 'responses', body: {} } as const),
);

const schema = fc
  .object({
    key: fc.constantFrom(
      ...'type properties items anyOf allOf $ref $defs definitions enum const required if not default a b'.split(' '),
      '__proto__',
    ),
    values: [
      fc.constantFrom('string', 'object', 'null', '#', '#/$defs/a', '#/properties/a', '#/nowhere', 'a'),
      fc.boolean(),
      fc.integer(),
      fc.constant(null),
    ],
    withNullPrototype: false,
    maxDepth: 5,
    maxKeys: 5,
  })
  .map((value) => JSON.parse(JSON.stringify(value)) as JsonObject);

const tools: fc.Arbitrary<Tool[]> = fc.uniqueArray(
  fc.record({ tool, schema }).map(({ tool: one, schema: { type: _, ...parameters } }) => ({
    kind: 'function',
    tool: one,
    parameters,
    at: 'tools[0]',
  })),
  { maxLength: 3, selector: (declared) => declared.tool.name },
);

const request: fc.Arbitrary<CanonicalRequest> = fc
  .record({ items: fc.array(item, { maxLength: 14 }), tools, stream: fc.boolean() })
  .map((members) => requestOf(members));

test('every body keeps the rules of the wire, holds no foreign value, and is made the same way twice', () => {
  fc.assert(
    fc.property(request, fc.boolean(), (made, isRefused) => {
      const target = targetOf({ without: new Set(isRefused ? (['opaque'] as const) : []) });
      const { body } = geminiUpstream.encodeRequest(made, target);
      checkBody(body);
      assert.equal(geminiUpstream.encodeRequest(made, target).body, body);
      assert.doesNotMatch(body, /"foreign\d/);
      if (isRefused) assert.doesNotMatch(body, /"thoughtSignature":"mine/);
    }),
    { numRuns: 400 },
  );
});

test('every text of the user and every answered call arrives, in order', () => {
  fc.assert(
    fc.property(request, (made) => {
      const body = JSON.parse(geminiUpstream.encodeRequest(made, targetOf()).body);
      const said: string[] = [];
      const calls: string[] = [];
      for (const content of body.contents) {
        for (const part of content.parts) {
          if (content.role === 'user' && typeof part.text === 'string') said.push(part.text);
          if (part.functionCall !== undefined) calls.push(JSON.stringify(part.functionCall.args));
        }
      }
      const wanted = made.items.flatMap((one) =>
        // A lone space may also be the turn that the protocol wants before a model speaks.
        one.kind === 'text' && one.role === 'user' && one.text !== '' && one.text !== ' ' ? [one.text] : [],
      );
      const heard = said.filter((text) => !text.startsWith('<system_message>') && text !== ' ');
      assert.deepEqual(heard, wanted);
      const inputs = made.items.flatMap((one) => (one.kind === 'toolCall' ? [JSON.stringify(JSON.parse(one.input))] : []));
      let at = -1;
      for (const call of calls) {
        at = inputs.indexOf(call, at + 1);
        assert.notEqual(at, -1, 'a call out of order');
      }
      for (const input of answeredOnce(made.items)) assert.ok(calls.includes(JSON.stringify(JSON.parse(input))), 'a lost call');
    }),
    { numRuns: 300 },
  );
});

/** The arguments of calls that one later result answers, and nothing else bears their id. */
function answeredOnce(items: readonly Item[]): string[] {
  return items.flatMap((one, at) => {
    if (one.kind !== 'toolCall') return [];
    const others = items.filter((other) => other !== one && 'callId' in other && other.callId === one.callId);
    const [answer] = others;
    return others.length === 1 && answer?.kind === 'toolResult' && items.indexOf(answer) > at ? [one.input] : [];
  });
}

test('a lowered schema holds supported keywords only, and lowering it again changes nothing', () => {
  fc.assert(
    fc.property(schema, (made) => {
      const lowered = atOnce(lowerSchema(made, GENERATIVE_JSON_SCHEMA));
      const text = JSON.stringify(lowered);
      checkSchema(JSON.parse(text), JSON.parse(text));
      assert.equal(JSON.stringify(atOnce(lowerSchema(JSON.parse(text), GENERATIVE_JSON_SCHEMA))), text);
    }),
    { numRuns: 500 },
  );
});

interface WirePart {
  readonly text?: string;
  readonly thought?: true;
  readonly functionCall?: { readonly id: string; readonly name: string; readonly args: unknown };
  readonly inlineData?: { readonly mimeType: string; readonly data: string };
  readonly thoughtSignature?: string;
}
const signature = fc
  .option(fc.constantFrom('S1', 'S2', 'S3'), { nil: undefined })
  .map((value) => (value === undefined ? {} : { thoughtSignature: value }));
const spoken: fc.Arbitrary<WirePart> = fc.oneof(
  fc.record({ text: words, signature }).map((made) => ({ text: made.text, ...made.signature })),
  fc.record({ text: words, signature }).map((made) => ({ text: made.text, thought: true, ...made.signature }) as const),
  signature.map((extra) => ({ functionCall: { id: 'x', name: 'f', args: { a: 1 } }, ...extra })),
  signature.map((extra) => ({ inlineData: { mimeType: 'image/png', data: 'AAAA' }, ...extra })),
);

test('an answer that comes back as history says every part as it was, each signature on its own part', () => {
  fc.assert(
    fc.property(fc.array(spoken, { maxLength: 8 }), (parts) => {
      const said = parts.map((part, index) =>
        part.functionCall === undefined ? part : { ...part, functionCall: { ...part.functionCall, id: `c${index}` } },
      );
      const answer: OutputItem[] = foldWhole({ candidates: [{ content: { parts: said }, finishReason: 'STOP' }] }).items.map(
        (one) => one.item,
      );
      const results = answer.flatMap((one): Item[] =>
        one.kind === 'toolCall'
          ? [{ kind: 'toolResult', toolType: 'function', callId: one.callId, content: [], isError: false }]
          : [],
      );
      const question: Item = { kind: 'text', role: 'user', text: 'q', citations: [] };
      const history = requestOf({ items: [question, ...answer, ...results] });
      const { body } = geminiUpstream.encodeRequest(history, targetOf());
      checkBody(body);
      const replayed: WirePart[] = JSON.parse(body).contents[1]?.parts ?? [];
      assert.deepEqual(normalise(replayed), normalise(said));
    }),
    { numRuns: 500 },
  );
});

/**
 * What may differ: unsigned neighbours of one kind are one text, empty unsigned texts say nothing, and a signature on an empty
 * part behind an unsigned call is the call's own. The mark of foreign calls is no part of the answer.
 */
function normalise(parts: readonly WirePart[]): WirePart[] {
  const out: WirePart[] = [];
  for (const part of parts) {
    const last = out.at(-1);
    const bare = part.thoughtSignature === 'skip_thought_signature_validator' ? without(part) : part;
    const isUnsigned = bare.thoughtSignature === undefined;
    if (bare.text === '' && isUnsigned) continue;
    if (bare.text === '' && last?.functionCall !== undefined && last.thoughtSignature === undefined) {
      out[out.length - 1] = { ...last, ...(isUnsigned ? {} : { thoughtSignature: bare.thoughtSignature ?? '' }) };
    } else if (
      isUnsigned &&
      bare.text !== undefined &&
      last?.text !== undefined &&
      last.thoughtSignature === undefined &&
      last.thought === bare.thought
    ) {
      out[out.length - 1] = { ...last, text: last.text + bare.text };
    } else {
      out.push(bare);
    }
  }
  return out;
}

function without({ thoughtSignature: _, ...part }: WirePart): WirePart {
  return part;
}

test('cuts do not matter: a text streamed in any pieces is the same item as the whole one', () => {
  fc.assert(
    fc.property(fc.array(words, { maxLength: 6 }), fc.boolean(), (pieces, thought) => {
      const part = (text: string): WirePart => (thought ? { text, thought: true } : { text });
      const stream = foldStream([...pieces.map((text) => chunkOf([part(text)])), chunkOf([{ text: '' }], 'STOP')]);
      const whole = foldWhole(chunkOf([part(pieces.join(''))], 'STOP'));
      assert.deepEqual(stream.items, whole.items);
      assert.deepEqual(stream.outcome, whole.outcome);
    }),
  );
});

test('garbage gets only documented errors', () => {
  const member = fc.constantFrom(
    ...'candidates content parts text functionCall args name thoughtSignature finishReason usageMetadata promptFeedback blockReason error'.split(
      ' ',
    ),
    ...'index inlineData data groundingMetadata groundingSupports segment citationMetadata citations partialArgs jsonPath __proto__'.split(
      ' ',
    ),
  );
  const garbage = fc.array(
    fc.oneof(
      fc.string(),
      fc.object({ key: member, withNullPrototype: false, maxDepth: 6 }).map((value) => JSON.stringify(value)),
    ),
    { maxLength: 4 },
  );
  fc.assert(
    fc.property(garbage, (chunks) => {
      try {
        decodeStream(chunks);
      } catch (error) {
        assert.ok(error instanceof GatewayError, String(error));
        assert.equal(error.blame, 'upstream');
      }
    }),
    { numRuns: 500 },
  );
});
