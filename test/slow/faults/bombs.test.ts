/** E4 22, 23: bodies that are cheap to send and dear to read. Each is read, or refused as the client's fault, in linear time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import { parseJson } from '../../../src/codecs/canonical/json.ts';
import { codecs } from '../../../src/codecs/registry.ts';
import { parseJsonBody } from '../../../src/http/request/body.ts';
import { estimateInput } from '../../../src/http/money/estimate.ts';
import { figure } from '../../support/figures.ts';
import { decodeBytes, bytesOf, ownerOf, targetOf, decodeContext } from '../../support/wire.ts';
import { nested, requestBombs } from './support/bombs.ts';
import { processorMs } from './support/processor-time.ts';

/** Quadratic work on this many elements takes ten times as long as this, linear work a tenth of it, on a busy machine. */
const COUNT = 20_000;
const BOUND_MS = 3_000;

let worst = 0;
let count = 0;

for (const { name, dialect, body } of requestBombs(COUNT)) {
  test(`F22, F23: ${dialect}: ${name}`, (t) => {
    const client = codecs.client(dialect);
    const ms = processorMs(() => {
      const { text, json } = parseJsonBody(Buffer.from(JSON.stringify(body)));
      const request = client.decodeRequest(text, json, { open: () => undefined });
      estimateInput(request);
      for (const type of codecs.textTypes) {
        const upstream = codecs.upstream(type);
        try {
          upstream.encodeRequest(request, targetOf(ownerOf(upstream)));
        } catch (thrown) {
          assert.ok(thrown instanceof GatewayError && thrown.blame === 'client', `${type}: ${String(thrown)}`);
        }
      }
    });
    assert.ok(ms < BOUND_MS, `took ${Math.round(ms)} ms`);
    worst = Math.max(worst, ms);
    count += 1;
    figure(t, `bodies of ${COUNT} elements for every upstream: how many, the slowest`, `${count}, ${Math.round(worst)} ms`);
  });
}

test('F22: a body that is nested is refused at a depth that no recursion minds', () => {
  for (const kind of ['object', 'array'] as const) {
    assert.throws(() => parseJsonBody(Buffer.from(nested(100_000, kind))), /nested deeper/);
    assert.ok(parseJsonBody(Buffer.from(nested(400, kind))).json);
  }
});

const DEEP = 200_000;
const deepValue = nested(DEEP);
const answers: Readonly<Record<string, readonly string[]>> = {
  chat_completion: [
    `{"choices":[{"index":0,"message":{"role":"assistant","content":"x","extra":${deepValue}},"finish_reason":"stop"}]}`,
    `{"choices":[{"index":0,"message":{"role":"assistant","content":"x","reasoning_details":[{"type":"other","x":${deepValue}}]},"finish_reason":"stop"}]}`,
    `{"choices":[{"index":0,"message":{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":${JSON.stringify(deepValue)}}}]},"finish_reason":"tool_calls"}]}`,
    `{"error":${deepValue}}`,
  ],
  messages: [
    `{"id":"m","type":"message","role":"assistant","model":"x","content":[{"type":"tool_use","id":"t","name":"f","input":${deepValue}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`,
    `{"id":"m","type":"message","role":"assistant","model":"x","content":[{"type":"novelty","x":${deepValue}}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`,
  ],
  responses: [
    `{"id":"r","object":"response","status":"completed","output":[{"type":"novelty","id":"n","x":${deepValue}}]}`,
    `{"id":"r","object":"response","status":"completed","output":[{"type":"function_call","id":"n","call_id":"c","name":"f","arguments":${JSON.stringify(deepValue)}}]}`,
  ],
  gemini: [
    `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","args":${deepValue}}}]},"finishReason":"STOP"}]}`,
    `{"candidates":[{"content":{"role":"model","parts":[{"novelty":${deepValue}}]},"finishReason":"STOP"}]}`,
  ],
};

for (const [type, texts] of Object.entries(answers)) {
  test(`F7: ${type}: answers nested ${DEEP} deep are read, or refused as the upstream's fault, for every client`, () => {
    for (const upstream of [...codecs.textTypes].flatMap((name) => (name === type ? [codecs.upstream(name)] : []))) {
      assert.ok(upstream !== undefined);
      for (const text of texts) {
        assert.ok(parseJson(text));
        for (const run of [
          () => upstream.decodeResponse(text, decodeContext(ownerOf(upstream))),
          () => decodeBytes(upstream, [bytesOf(`data: ${text}\n\n`)]).failure,
          () => upstream.decodeError({ status: 400, headers: {}, text }),
        ]) {
          try {
            run();
          } catch (thrown) {
            assert.ok(thrown instanceof GatewayError && thrown.blame === 'upstream', `${text.slice(0, 90)}: ${String(thrown)}`);
          }
        }
      }
    }
  });
}
