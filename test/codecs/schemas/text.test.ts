/** T10: schemas of tools and formats reach upstreams of other protocols as the client spelled them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isObject } from '../../../src/codecs/canonical/json.ts';
import { chat, messages, responses } from '../../support/dialects.ts';
import { openForTests, ownerOf, targetOf } from '../../support/wire.ts';

const SCHEMA =
  '{"type":"object","properties":{"b":{"const":12345678901234567890},"2":{"type":"string"},"1":{"enum":[1.0]}},"required":["b"]}';
const SPACED = SCHEMA.replaceAll(':', ' : ').replaceAll(',', ',\n');
const PLAIN = '{"type":"object","properties":{"b":{"const":1}}}';

const BODIES = {
  chat: (schema: string) =>
    `"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"web_search"},{"type":"function","function":{"name":"f","parameters":${PLAIN}}},{"type":"function","function":{"name":"g","parameters":${schema}}}],"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":${schema}}}`,
  responses: (schema: string) =>
    `"input":"hi","tools":[{"type":"web_search"},{"type":"function","name":"f","parameters":${PLAIN}},{"type":"namespace","name":"s","tools":[{"type":"function","name":"g","parameters":${schema}}]}],"text":{"format":{"type":"json_schema","name":"n","schema":${schema}}}`,
  messages: (schema: string) =>
    `"max_tokens":9,"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"bash_20250124","name":"bash"},{"name":"f","input_schema":${PLAIN}},{"name":"g","input_schema":${schema}}],"output_config":{"format":{"type":"json_schema","schema":${schema}}}`,
};

const PAIRS = [chat, responses, messages].flatMap((client) =>
  [chat, responses, messages].flatMap((upstream) => (client === upstream ? [] : [{ client, upstream }])),
);

function bodyOf({ client, upstream }: (typeof PAIRS)[number], schema: string): string {
  const text = `{"model":"m",${BODIES[client.client.dialect as keyof typeof BODIES](schema)}}`;
  const json: unknown = JSON.parse(text);
  if (!isObject(json)) throw new Error('no object');
  const request = client.client.decodeRequest(text, json, { open: openForTests });
  return upstream.upstream.encodeRequest(request, targetOf(ownerOf(upstream.upstream))).body;
}

for (const pair of PAIRS) {
  const name = `${pair.client.client.dialect} to ${pair.upstream.upstream.dialect}`;
  test(`T10: ${name}: schemas keep the order of their keys and their numbers`, () => {
    const body = bodyOf(pair, SPACED);
    // The messages vendor takes formats with closed objects only.
    const closed = SCHEMA.replace('},"required"', '},"additionalProperties":false,"required"');
    const isMessages = pair.upstream === messages;
    assert.equal(body.split(SCHEMA).length - 1, isMessages ? 1 : 2, body);
    assert.equal(body.split(closed).length - 1, isMessages ? 1 : 0, body);
    assert.ok(body.includes(PLAIN));
    JSON.parse(body);
  });

  test(`${name}: a schema without a type gets one in front`, () => {
    assert.ok(bodyOf(pair, '{"type":"object","properties":{"b":{},"1":{}}}').includes('{"b":{},"1":{}}'));
    if (pair.client === messages) return;
    const body = bodyOf(pair, '{"properties":{"b":{},"1":{}}}');
    assert.ok(body.includes('{"type":"object","properties":{"b":{},"1":{}}}'), body);
    const format =
      pair.upstream === messages
        ? JSON.stringify('{"properties":{"b":{},"1":{}}}').slice(1, -1)
        : '{"properties":{"b":{},"1":{}}}';
    assert.ok(body.includes(format), 'a format may be of anything');
  });
}
