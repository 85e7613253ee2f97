/** A choice that requires a call of a tool which the upstream is not offered: refused here, since every vendor refuses it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import type { JsonObject, JsonValue } from '../../../src/codecs/canonical/json.ts';
import { CLIENTS, UPSTREAMS } from '../../../src/codecs/registry.ts';
import { ownerOf, targetOf } from '../../support/wire.ts';

/** What `client` asks with these tools and this choice, for an upstream of another dialect: the sent choice, or the refusal. */
function sent(client: string, upstream: string, tools: JsonValue[] | undefined, choice: JsonValue): unknown {
  const reader = CLIENTS.find((each) => each.dialect === client) ?? assert.fail();
  const writer = UPSTREAMS.find((each) => each.dialect === upstream) ?? assert.fail();
  const said = { role: 'user', content: 'q' };
  const conversation = client === 'responses' ? { input: [said] } : { messages: [said], max_tokens: 9 };
  const body: JsonObject = { model: 'm', ...conversation, ...(tools === undefined ? {} : { tools }), tool_choice: choice };
  const request = reader.decodeRequest(JSON.stringify(body), body, { open: () => undefined });
  try {
    return JSON.parse(writer.encodeRequest(request, targetOf(ownerOf(writer))).body).tool_choice;
  } catch (error) {
    assert.ok(error instanceof GatewayError);
    return `${error.code} ${error.details.param}`;
  }
}

const PAIRS = ['chat', 'responses', 'messages'].flatMap((client) =>
  ['chat', 'responses', 'messages', 'gemini']
    .filter((upstream) => upstream !== client)
    .map((upstream) => [client, upstream] as const),
);
const REFUSED = 'unsupported_conversion tool_choice';

const named = (client: string, name: string): JsonValue => {
  if (client === 'messages') return { type: 'tool', name };
  return client === 'chat' ? { type: 'function', function: { name } } : { type: 'function', name };
};
const required = (client: string): JsonValue => (client === 'messages' ? { type: 'any' } : 'required');
const tool = (client: string, name: string): JsonValue => {
  if (client === 'messages') return { name, input_schema: { type: 'object' } };
  return client === 'chat' ? { type: 'function', function: { name } } : { type: 'function', name };
};

test('a required call without any tool is refused by every upstream of another dialect', () => {
  for (const [client, upstream] of PAIRS)
    for (const tools of [undefined, []])
      for (const choice of [required(client), named(client, 'f')])
        assert.equal(sent(client, upstream, tools, choice), REFUSED, `${client} to ${upstream}`);
});

test('a required call of a tool that is not among the offered ones is refused, of one that is goes out', () => {
  for (const [client, upstream] of PAIRS) {
    const where = `${client} to ${upstream}`;
    assert.equal(sent(client, upstream, [tool(client, 'f')], named(client, 'other')), REFUSED, where);
    if (upstream !== 'gemini')
      assert.match(JSON.stringify(sent(client, upstream, [tool(client, 'f')], named(client, 'f'))), /"f"/, where);
  }
});

test('a tool of the vendor that the upstream cannot run is not offered: to require it beside others is refused, too', () => {
  const bash = { type: 'bash_20250124', name: 'bash' };
  for (const upstream of ['chat', 'responses', 'gemini'])
    assert.equal(sent('messages', upstream, [tool('messages', 'f'), bash], named('messages', 'bash')), REFUSED, upstream);
});

test('a choice that requires nothing says nothing where there are no tools', () => {
  for (const [client, upstream] of PAIRS)
    for (const mode of ['auto', 'none'])
      assert.equal(
        sent(client, upstream, undefined, client === 'messages' ? { type: mode } : mode),
        undefined,
        `${client} to ${upstream}`,
      );
});
