/**
 * What clients read has the types of the vendors' own SDKs: every body and event, of every dialect over every upstream dialect.
 * What a client gets from an upstream of its own dialect is that upstream's, with the gateway's members in it.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type ErrorCode, ERRORS, GatewayError } from '../../src/codecs/canonical/error.ts';
import { fold } from '../../src/codecs/canonical/fold.ts';
import type { ClientCodec } from '../../src/codecs/codec.ts';
import { CLIENTS } from '../../src/codecs/registry.ts';
import { answer, fractions } from '../support/arbitraries/response.ts';
import { UPSTREAMS } from '../support/dialects.ts';
import { checkShape } from '../support/vendor-shapes.ts';
import { misfits, VendorTypes } from '../support/vendor-types.ts';
import { decodeBytes, decodeContext, encodeSteps, ownerOf, requestOf, responseContext } from '../support/wire.ts';
import { sized } from '../support/sampled.ts';

const types = new VendorTypes();
test.after(() => types[Symbol.dispose]());

const check = (client: ClientCodec, value: unknown, form: 'event' | 'body'): void =>
  checkShape(types, client.dialect, value, form);

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
        { numRuns: sized(15, 40) },
      );
    });
  }
}

test('searches that an upstream of another protocol ran are counted as the SDK of each client declares', () => {
  const start = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', stop_reason: 'end_turn', stop_sequence: null };
  const usage = { input_tokens: 1, output_tokens: 1, server_tool_use: { web_search_requests: 2 } };
  const upstream = UPSTREAMS.find((side) => side.upstream.dialect === 'messages')?.upstream ?? assert.fail();
  const owner = ownerOf(upstream);
  const said = JSON.stringify({ ...start, content: [{ type: 'text', text: 'x' }], usage });
  const whole = fold(upstream.decodeResponse(said, decodeContext(owner)).events);
  for (const client of CLIENTS) {
    const body = JSON.parse(
      client.encodeResponse(whole, undefined, responseContext(client, owner, { request: requestOf(client.dialect) })),
    );
    check(client, body, 'body');
    if (client.dialect === 'responses') assert.equal(body.tool_usage.web_search.num_requests, 2);
  }
});

test('every error of the gateway is one of the SDK of its client', () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    for (const client of CLIENTS) {
      const body: { error?: unknown } = JSON.parse(client.encodeError(new GatewayError(code, 'x', { param: 'a.b' }), 'req_1'));
      if (client.dialect === 'messages') {
        // The vendor documents it beside the status 413, and its SDK goes by the status.
        if (code === 'request_too_large' || code === 'websocket_history_limit_exceeded') continue;
        assert.deepEqual(misfits(body, types.shape('anthropicErrors', 'ErrorResponse')), [], code);
      } else assert.deepEqual(misfits(body.error, types.shape('openaiErrors', 'ErrorObject')), [], `${client.dialect}: ${code}`);
    }
  }
});

test('the checks find what is wrong, and where', () => {
  const shape = types.shape('messages', 'Message');
  const wrong = misfits({ type: 'message', role: 'user', content: [{ type: 'text' }, { type: 'nothing' }] }, shape);
  for (const one of ['.role: "user" is not "assistant"', '.id: is missing', '.content[0].text: is missing'])
    assert.ok(wrong.includes(one), `${one} in ${wrong.join('; ')}`);
  assert.ok(wrong.some((one) => one.startsWith('.content[1]: {"type":"nothing"} is none of ')));
});
