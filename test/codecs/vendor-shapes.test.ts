/**
 * What clients read has the types of the vendors' own SDKs: every body and event, of every dialect over every upstream dialect.
 * What a client gets from an upstream of its own dialect is that upstream's, with the gateway's members in it.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../../src/codecs/canonical/error.ts';
import { fold } from '../../src/codecs/canonical/fold.ts';
import type { ClientCodec } from '../../src/codecs/codec.ts';
import { CLIENTS } from '../../src/codecs/registry.ts';
import { answer, fractions } from '../support/arbitraries/response.ts';
import { UPSTREAMS } from '../support/dialects.ts';
import { misfits, type Shape, type VendorFile, VendorTypes } from '../support/vendor-types.ts';
import { decodeBytes, encodeSteps, ownerOf, requestOf, responseContext } from '../support/wire.ts';

const types = new VendorTypes();
test.after(() => types[Symbol.dispose]());

/** The types of an event and of a body: those of the API as it is, and those of its betas. */
const TYPES: Readonly<Record<string, readonly (readonly [VendorFile, string, string])[]>> = {
  chat: [['chat', 'ChatCompletionChunk', 'ChatCompletion']],
  completions: [['completions', 'Completion', 'Completion']],
  responses: [['responses', 'ResponseStreamEvent', 'Response']],
  messages: [
    ['messages', 'RawMessageStreamEvent', 'Message'],
    ['betaMessages', 'BetaRawMessageStreamEvent', 'BetaMessage'],
  ],
};

/** Where the types ask for more than the vendor's own servers send, and why. */
const EXCEPTIONS: readonly { readonly in: VendorFile; readonly what: RegExp; readonly why: string }[] = [
  { in: 'responses', what: /\.output_text: is missing$/, why: 'the SDK adds it to what it reads' },
  {
    in: 'responses',
    what: /^(\.response)?\.usage: null /,
    why: 'the vendor sends null until it has counted, and Open Responses requires the member',
  },
  { in: 'completions', what: /\.finish_reason: null /, why: 'the vendor sends null in every chunk but the last' },
  {
    in: 'completions',
    what: /^\.usage: null /,
    why: 'the vendor sends null in every chunk but the last, where usage is asked for',
  },
  {
    in: 'betaMessages',
    what: /\.(context_management|iterations|fallback_credit|estimated_tokens): is missing$/,
    why: 'sent where a request turned on the beta that they belong to',
  },
];

function unexplained(wrong: readonly string[], file: VendorFile): string[] {
  return wrong.filter((one) => !EXCEPTIONS.some(({ in: where, what }) => where === file && what.test(one)));
}

function check(client: ClientCodec, value: unknown, form: 'event' | 'body'): void {
  for (const [file, event, body] of TYPES[client.dialect] ?? []) {
    const shape: Shape = types.shape(file, form === 'event' ? event : body);
    assert.deepEqual(unexplained(misfits(value, shape), file), [], `${file}: ${JSON.stringify(value).slice(0, 600)}`);
  }
}

for (const side of UPSTREAMS) {
  for (const client of CLIENTS) {
    test(`a ${client.dialect} client of a ${side.upstream.dialect} upstream reads what its vendor's SDK declares`, () => {
      const owner = ownerOf(side.upstream);
      const request = requestOf('chat', { logprobs: { top: 20 } });
      const context = () => responseContext(client, owner, { request: requestOf(client.dialect) });
      fc.assert(
        fc.property(answer(side.features, owner), fractions, fc.boolean(), (said, cuts, isSpliced) => {
          const { steps, events, failure } = decodeBytes(side.upstream, [side.write(said, cuts, true)], { request });
          assert.equal(failure, undefined);
          const given = isSpliced ? steps : steps.map((step) => ({ events: step.events }));
          for (const { data } of encodeSteps(client, given, context())) {
            const value: unknown = data === '[DONE]' ? undefined : JSON.parse(data);
            // Errors of streams have no type in the SDKs but that of responses, which is a terminal event like the others.
            const isError = client.dialect !== 'responses' && typeof value === 'object' && value !== null && 'error' in value;
            if (value !== undefined && !isError) check(client, value, 'event');
          }
          let body: string;
          try {
            body = client.encodeResponse(fold(events), undefined, context());
          } catch (error) {
            assert.ok(error instanceof GatewayError && error.code === 'response_not_representable', String(error));
            return;
          }
          check(client, JSON.parse(body), 'body');
        }),
        { numRuns: 40 },
      );
    });
  }
}

test('a messages client reads errors as its SDK declares them', () => {
  const client = CLIENTS.find(({ dialect }) => dialect === 'messages') ?? assert.fail();
  for (const code of [
    'upstream_error',
    'unauthorized',
    'rate_limit_exceeded',
    'model_not_allowed',
    'overloaded',
    'insufficient_balance',
  ] as const) {
    const body: unknown = JSON.parse(client.encodeError(new GatewayError(code, 'x'), 'req_1'));
    assert.deepEqual(misfits(body, types.shape('anthropicErrors', 'ErrorResponse')), [], code);
  }
});

test('the checks find what is wrong, and where', () => {
  const shape = types.shape('messages', 'Message');
  const wrong = misfits({ type: 'message', role: 'user', content: [{ type: 'text' }, { type: 'nothing' }] }, shape);
  for (const one of ['.role: "user" is not "assistant"', '.id: is missing', '.content[0].text: is missing'])
    assert.ok(wrong.includes(one), `${one} in ${wrong.join('; ')}`);
  assert.ok(wrong.some((one) => one.startsWith('.content[1]: {"type":"nothing"} is none of ')));
});
