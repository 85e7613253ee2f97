/**
 * What is fuzzed: one entry for each kind of bytes from outside, with the law that no input may break. Inputs are JSON values, so
 * that a finding can be committed as it is.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Dialect } from '../../src/codecs/canonical/dialect.ts';
import { isObject } from '../../src/codecs/canonical/json.ts';
import { readEmbeddingRequest } from '../../src/codecs/embeddings/request.ts';
import { createEnvelopes } from '../../src/codecs/envelope.ts';
import { readImageForm } from '../../src/codecs/images/read-form.ts';
import { readImageJson } from '../../src/codecs/images/read-json.ts';
import { createMultipartReader, formBoundary } from '../../src/codecs/bodies/multipart-reader.ts';
import { codecs } from '../../src/codecs/registry.ts';
import { sanitise } from '../../src/codecs/errors/sanitise.ts';
import { decodeVideoRequest } from '../../src/codecs/videos/request.ts';
import { parseJsonBody } from '../../src/http/request/body.ts';
import { ConfigError } from '../../src/http/config/config-error.ts';
import { atOnce } from '../../src/codecs/steps.ts';
import { readClientEvent } from '../../src/http/websocket/client-event.ts';
import { pathOfTarget, matchRoute } from '../../src/http/server/route-table.ts';
import { ANSWER_TARGETS } from './answer-targets.ts';
import { isDocumented, type Mutation, mutate, mutation, type Target } from './mutations.ts';
import { requestBombs } from '../slow/faults/support/bombs.ts';
import { endingOf, GOOD, TYPES, type Type, WHOLE } from '../slow/faults/support/rig.ts';
import { parseConfig } from '../../src/http/config/parse.ts';
import { parsePrice } from '../../src/store/prices.ts';
import {
  cutBytes,
  decodeBytes,
  decodeContext,
  encodeSteps,
  ownerOf,
  responseContext,
  sseText,
  targetOf,
} from '../support/wire.ts';

const CLIENTS = ['chat', 'responses', 'messages', 'completions'] as const;

const SEEDS = requestBombs(2);
const RICH: Readonly<Record<(typeof CLIENTS)[number], readonly object[]>> = {
  chat: SEEDS.filter(({ dialect }) => dialect === 'chat').map(({ body }) => body),
  messages: SEEDS.filter(({ dialect }) => dialect === 'messages').map(({ body }) => body),
  responses: SEEDS.filter(({ dialect }) => dialect === 'responses').map(({ body }) => body),
  completions: [{ model: 'm', prompt: ['x'], max_tokens: 5, stream: true, stop: ['a'], temperature: 0.5, user: 'u' }],
};

interface Mutated {
  readonly seed: number;
  readonly mutations: readonly Mutation[];
}
const mutated: fc.Arbitrary<Mutated> = fc.record({
  seed: fc.nat(10_000),
  mutations: fc.array(mutation, { minLength: 1, maxLength: 5 }),
});

function pick<T>(list: readonly T[], index: number): T {
  const found = list[index % list.length];
  if (found === undefined) throw new Error('an empty list');
  return found;
}

/** Any body of an endpoint: decoded and sent to every upstream, or refused as the client's fault. */
function requestTarget(dialect: (typeof CLIENTS)[number]): Target {
  return {
    name: `request-${dialect}`,
    runs: 400,
    input: mutated,
    check(input) {
      const { seed, mutations } = input as Mutated;
      const client = codecs.client(dialect as Dialect);
      let request: ReturnType<typeof client.decodeRequest>;
      try {
        const { text, json } = parseJsonBody(Buffer.from(JSON.stringify(mutate(pick(RICH[dialect], seed), mutations) ?? null)));
        request = client.decodeRequest(text, json, { open: () => undefined });
      } catch (thrown) {
        return isDocumented(thrown, ['client']);
      }
      for (const type of codecs.textTypes) {
        const upstream = codecs.upstream(type);
        try {
          const sent = upstream.encodeRequest(request, targetOf(ownerOf(upstream)));
          const body: unknown = JSON.parse(sent.body);
          assert.ok(isObject(body));
          for (const name of ['api_base', 'base_url', 'user_config']) assert.equal(Object.hasOwn(body, name), false);
          assert.equal(upstream.encodeRequest(request, targetOf(ownerOf(upstream))).body, sent.body, 'deterministic');
        } catch (thrown) {
          isDocumented(thrown, ['client']);
        }
      }
      assert.equal(Object.hasOwn(Object.prototype, 'polluted'), false);
    },
  };
}

interface Wire {
  readonly mutations: readonly Mutation[];
  readonly frames: readonly { readonly at: number; readonly how: 'drop' | 'repeat' | 'swap' | 'mutate' | 'garbage' }[];
  readonly cuts: readonly number[];
  readonly truncate: number;
  readonly garbage: string;
}
const wire: fc.Arbitrary<Wire> = fc.record({
  mutations: fc.array(mutation, { maxLength: 3 }),
  frames: fc.array(
    fc.record({
      at: fc.nat(50),
      how: fc.constantFrom('drop' as const, 'repeat' as const, 'swap' as const, 'mutate' as const, 'garbage' as const),
    }),
    { maxLength: 4 },
  ),
  cuts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 5 }),
  truncate: fc.double({ min: 0.2, max: 1.5, noNaN: true }),
  garbage: fc.oneof(
    fc.string({ unit: 'binary', maxLength: 30 }),
    fc.constantFrom(
      'data: [DONE]\n\n',
      'data: null\n\n',
      'data: []\n\n',
      'event: error\ndata: {}\n\n',
      ': x\n\n',
      'data: 1\n\n',
      '\r\n\r\n',
      'data\n\n',
      'id: 1\nretry: 5\n\n',
    ),
  ),
});

function wireText(type: Type, input: Wire): string {
  let frames = [...GOOD[type]];
  for (const { at, how } of input.frames) {
    const index = at % Math.max(1, frames.length);
    const frame = frames[index] ?? '';
    if (how === 'drop') frames = frames.toSpliced(index, 1);
    else if (how === 'repeat') frames = frames.toSpliced(index, 0, frame);
    else if (how === 'swap') frames = frames.toSpliced(index, 1).toSpliced((index + 1) % Math.max(1, frames.length), 0, frame);
    else if (how === 'garbage') frames = frames.toSpliced(index, 0, input.garbage);
    else
      frames[index] = frame.replace(/^data: (.*)$/m, (whole, data: string) =>
        data.startsWith('{') ? `data: ${JSON.stringify(mutate(JSON.parse(data), input.mutations))}` : whole,
      );
  }
  const text = frames.join('');
  return input.truncate >= 1 ? text : text.slice(0, Math.floor(text.length * input.truncate));
}

/** Any bytes of an upstream: documented faults, one ending for every client, and never two meanings. */
function streamTarget(type: Type): Target {
  return {
    name: `stream-${type}`,
    runs: 300,
    input: wire,
    check(input) {
      const fuzzed = input as Wire;
      const upstream = codecs.upstream(type);
      const bytes = Buffer.from(wireText(type, fuzzed));
      const decoded = decodeBytes(upstream, cutBytes(bytes, fuzzed.cuts));
      if (decoded.failure !== undefined) isDocumented(decoded.failure, ['upstream']);
      const whole = decodeBytes(upstream, [bytes]);
      assert.equal(decoded.failure === undefined, whole.failure === undefined, 'cuts do not matter');
      for (const dialect of ['chat', 'responses', 'messages'] as const) {
        const client = codecs.client(dialect);
        const frames = encodeSteps(client, decoded.steps, responseContext(client, ownerOf(upstream)), decoded.failure);
        const ending = endingOf(dialect, sseText(frames));
        if (decoded.failure !== undefined) assert.notEqual(ending, 'success', 'no success from failure');
        assert.notEqual(ending, 'none', 'always sealed');
      }
    },
  };
}

function wholeTarget(type: Type): Target {
  return {
    name: `whole-${type}`,
    runs: 300,
    input: fc.record({
      mutations: fc.array(mutation, { minLength: 1, maxLength: 5 }),
      status: fc.constantFrom(200, 400, 403, 429, 500),
    }),
    check(input) {
      const { mutations, status } = input as { mutations: readonly Mutation[]; status: number };
      const upstream = codecs.upstream(type);
      const seed: unknown =
        status === 200
          ? JSON.parse(WHOLE[type])
          : {
              error: {
                message: 'no',
                type: 't',
                code: 'c',
                param: 'p',
                metadata: { provider_code: 1 },
                details: [{ retryDelay: '3s' }],
              },
            };
      const text = JSON.stringify(mutate(seed, mutations)) ?? '';
      if (status !== 200) {
        const error = upstream.decodeError({ status, headers: { 'retry-after': '1' }, text });
        isDocumented(error, ['upstream']);
        return;
      }
      try {
        const step = upstream.decodeResponse(text, decodeContext(ownerOf(upstream)));
        for (const dialect of ['chat', 'responses', 'messages'] as const) {
          const client = codecs.client(dialect);
          // What the seal does with a whole answer where a stream was asked.
          const frames = encodeSteps(client, [{ events: step.events }], responseContext(client, ownerOf(upstream)));
          assert.notEqual(endingOf(dialect, sseText(frames)), 'none');
        }
      } catch (thrown) {
        isDocumented(thrown, ['upstream']);
      }
    },
  };
}

const FORM =
  '--b\r\ncontent-disposition: form-data; name="model"\r\n\r\nm\r\n--b\r\ncontent-disposition: form-data; name="prompt"\r\n\r\nx\r\n--b\r\ncontent-disposition: form-data; name="image[]"; filename="a.png"\r\ncontent-type: image/png\r\n\r\n\x89PNG\r\n\x1a\n\r\n--b--\r\n';

const bytesEdits = fc.array(
  fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    remove: fc.nat(40),
    insert: fc.oneof(
      fc.string({ unit: 'binary', maxLength: 10 }),
      fc.constantFrom('\r\n', '--b', '--b--', '"', ';', 'name="__proto__"', '\0', '\r\n\r\n'),
    ),
  }),
  { maxLength: 5 },
);

function edited(
  text: string,
  edits: readonly { readonly at: number; readonly remove: number; readonly insert: string }[],
): string {
  return edits.reduce((now, { at, remove, insert }) => {
    const index = Math.floor(at * now.length);
    return now.slice(0, index) + insert + now.slice(index + remove);
  }, text);
}

const ENVELOPE_SECRET = { id: 1, bytes: new Uint8Array(32).fill(9) };
const CONFIG = {
  listen: { host: '127.0.0.1', port: 0 },
  trusted_proxies: ['10.0.0.0/8'],
  limits: { json_bytes: 4096 },
  channels: [
    {
      id: 'a',
      type: 'responses',
      base_url: 'https://a.example/v1',
      api_key: 'k',
      models: { m: 'up' },
      timeouts: { idle_ms: 5 },
      options: { headers: { 'x-a': 'b' }, parameters: { a: 1 } },
    },
  ],
  models: { m: { kind: 'text', price: { input: '1.25', output: '10' } } },
};

export const TARGETS: readonly Target[] = [
  ...CLIENTS.map(requestTarget),
  ...TYPES.map(streamTarget),
  ...TYPES.map(wholeTarget),
  ...ANSWER_TARGETS,
  {
    name: 'request-small',
    runs: 400,
    input: mutated,
    check(input) {
      const { seed, mutations } = input as Mutated;
      const bodies: readonly (readonly [object, (text: string, json: Parameters<typeof readEmbeddingRequest>[1]) => unknown])[] =
        [
          [{ model: 'm', input: ['a', 'b'], encoding_format: 'float', dimensions: 3 }, readEmbeddingRequest],
          [
            { model: 'm', prompt: 'x', n: 1, size: '1024x1024', stream: false },
            (text, json) => readImageJson('generation', text, json),
          ],
          [
            { model: 'm', prompt: 'x', images: [{ image_url: 'data:image/png;base64,AAAA' }], mask: { file_id: 'f' } },
            (text, json) => readImageJson('edit', text, json),
          ],
          [
            {
              model: 'm',
              prompt: 'x',
              duration: 5,
              input: [{ type: 'image', url: 'https://a.example/x', role: 'first_frame' }],
              provider_options: { a: { seed: 1 } },
            },
            (_text, json) => decodeVideoRequest(json),
          ],
        ];
      const [body, read] = pick(bodies, seed);
      try {
        const { text, json } = parseJsonBody(Buffer.from(JSON.stringify(mutate(body, mutations) ?? null)));
        read(text, json);
      } catch (thrown) {
        isDocumented(thrown, ['client']);
      }
    },
  },
  {
    name: 'websocket',
    runs: 400,
    input: mutated,
    check(input) {
      const { seed, mutations } = input as Mutated;
      const request = pick(RICH.responses, seed);
      const messages = [
        { type: 'response.create', ...request },
        { type: 'response.create', response: request, event_id: 'e' },
        { type: 'response.append', input: [{ role: 'user', content: 'x' }] },
        { type: 'response.cancel' },
      ];
      try {
        const bytes = Buffer.from(JSON.stringify(mutate(pick(messages, seed), mutations) ?? null));
        const event = atOnce(readClientEvent(bytes, false));
        if (event.kind === 'append') JSON.parse(event.input);
        if (event.kind === 'create') assert.deepEqual(JSON.parse(event.text), event.json);
      } catch (thrown) {
        isDocumented(thrown, ['client']);
      }
    },
  },
  {
    name: 'body-bytes',
    runs: 500,
    input: fc.oneof(
      fc.string({ unit: 'binary', maxLength: 80 }),
      bytesEdits.map((edits) => edited('{"a":[1,"x\\u00e9",{"b":null}],"__proto__":1}', edits)),
    ),
    check(input) {
      try {
        parseJsonBody(Buffer.from(String(input), 'latin1'));
      } catch (thrown) {
        isDocumented(thrown, ['client']);
      }
    },
  },
  {
    name: 'multipart',
    runs: 500,
    input: fc.record({
      edits: bytesEdits,
      cuts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 4 }),
      type: bytesEdits,
    }),
    check(input) {
      const { edits, cuts, type } = input as {
        edits: Parameters<typeof edited>[1];
        cuts: readonly number[];
        type: Parameters<typeof edited>[1];
      };
      try {
        formBoundary(edited('multipart/form-data; boundary="b"', type));
        const reader = createMultipartReader('b', { maxBytes: 4096 });
        for (const piece of cutBytes(Buffer.from(edited(FORM, edits), 'latin1'), cuts)) reader.push(Buffer.from(piece));
        readImageForm(reader.end());
      } catch (thrown) {
        isDocumented(thrown, ['client']);
      }
    },
  },
  {
    name: 'envelope',
    runs: 500,
    input: fc.record({ value: fc.string({ maxLength: 40 }), edits: bytesEdits, account: fc.string({ maxLength: 5 }) }),
    check(input) {
      const { value, edits, account } = input as { value: string; edits: Parameters<typeof edited>[1]; account: string };
      const envelopes = createEnvelopes({
        current: () => ENVELOPE_SECRET,
        byId: (id) => (id === 1 ? ENVELOPE_SECRET : undefined),
      });
      const sealed = envelopes.seal({ owner: { channelType: 'responses', scope: 's', model: 'm' }, value }, account);
      assert.equal(
        envelopes.opener(account)(sealed)?.value,
        value.isWellFormed() ? value : envelopes.opener(account)(sealed)?.value,
      );
      assert.equal(envelopes.opener(`${account}x`)(sealed), undefined);
      const forged = edited(sealed, edits);
      if (forged !== sealed) assert.equal(envelopes.opener(account)(forged), undefined);
    },
  },
  {
    name: 'config',
    runs: 100,
    input: fc.array(mutation, { minLength: 1, maxLength: 3 }),
    check(input) {
      const file = mutate(CONFIG, input as readonly Mutation[]);
      if (typeof file !== 'object' || file === null) return;
      try {
        parseConfig(JSON.stringify(file), {
          env: {},
          readFile: () => '',
          parsePrice,
          path: '/tmp/mizu.config.json',
          revision: 1,
          nowMs: 0,
        });
      } catch (thrown) {
        assert.ok(thrown instanceof ConfigError, String(thrown));
        assert.ok(thrown.problems.length > 0);
      }
      assert.equal(Object.hasOwn(Object.prototype, 'polluted'), false);
    },
  },
  {
    name: 'targets',
    runs: 500,
    input: fc.oneof(
      fc.string({ unit: 'binary', maxLength: 60 }),
      bytesEdits.map((edits) => edited('http://h/v1/videos/video_1/cancel?a=b#c', edits)),
    ),
    check(input) {
      const path = pathOfTarget(String(input));
      const match = matchRoute('POST', path);
      if (match.kind === 'route' && match.route.id === 'word') assert.match(match.id ?? '', /^[A-Za-z0-9_-]+$/);
    },
  },
  {
    name: 'sanitise',
    runs: 500,
    input: fc.array(
      fc.oneof(
        fc.string({ unit: 'binary', maxLength: 20 }),
        fc.constantFrom(
          'sk-upstream-secret-1',
          'https://u:p@h.example/x',
          '10.0.0.1:8080',
          '<script>',
          'Bearer abcdefgh',
          '\u001b[31m',
          'me@corp.example',
          '[::1]',
        ),
      ),
      { maxLength: 8 },
    ),
    check(input) {
      const shown = sanitise((input as string[]).join(' '), 'nothing');
      assert.doesNotMatch(shown, /sk-upstream-secret|u:p@|10\.0\.0\.1|<script|abcdefgh|corp\.example|\p{Cc}/u);
      assert.ok(shown.length <= 1024);
    },
  },
];
