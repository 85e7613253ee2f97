/** What a messages client says, at upstreams of the other protocols. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import type { JsonObject } from '../../../src/codecs/canonical/json.ts';
import { UPSTREAMS } from '../../../src/codecs/registry.ts';
import { ownerOf, targetOf } from '../../support/wire.ts';
import { decodeBody } from './support.ts';

const ask = { model: 'logical', max_tokens: 100 };

/** The body that the upstream of a dialect gets. */
function sent(dialect: string, changes: JsonObject) {
  const upstream = UPSTREAMS.find((codec) => codec.dialect === dialect);
  if (upstream === undefined) throw new Error(`no upstream speaks ${dialect}`);
  return JSON.parse(upstream.encodeRequest(decodeBody({ ...ask, ...changes }), targetOf(ownerOf(upstream))).body);
}

test('the record that an agent calls its user is an id of at most 64 characters, since vendors refuse a longer user', () => {
  const of = (dialect: string, id: string): unknown => {
    const body = sent(dialect, { metadata: { user_id: id }, messages: [{ role: 'user', content: 'hi' }] });
    return body.user;
  };
  const agent = (session: string) => JSON.stringify({ device_id: 'd'.repeat(64), account_uuid: '', session_id: session });
  for (const dialect of ['chat', 'responses']) {
    const fits = 'u'.repeat(64);
    assert.equal(of(dialect, fits), fits);
    const short = String(of(dialect, agent('one')));
    assert.ok(short.length <= 64, short);
    assert.equal(short, of(dialect, agent('one')), 'the same user is the same id');
    assert.notEqual(short, of(dialect, agent('two')));
  }
});

test('the title of a document of plain words is its heading where there are no documents', () => {
  const words = { type: 'document', title: 'Lease', source: { type: 'text', media_type: 'text/plain', data: 'rent' } };
  const picture = { type: 'image', source: { type: 'url', url: 'https://e.test/a.png' } };
  const content = [{ type: 'text', text: 'page' }, picture];
  const blocks = { type: 'document', title: 'Scan', context: 'old', source: { type: 'content', content } };
  const untitled = { ...words, title: null };
  const call = { type: 'tool_use', id: 'c', name: 'f', input: {} };
  const messages = (block: JsonObject) => [
    { role: 'user', content: [block] },
    { role: 'assistant', content: [call] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: [block] }] },
  ];
  const text = (said: string) => ({ type: 'text', text: said });

  const chat = (block: JsonObject) => sent('chat', { messages: messages(block) }).messages;
  assert.equal(chat(untitled)[0].content, 'rent');
  assert.equal(chat(words)[0].content, 'Lease\n\nrent');
  assert.equal(chat(words)[2].content, 'Lease\n\nrent');
  const link = { type: 'image_url', image_url: { url: 'https://e.test/a.png' } };
  assert.deepEqual(chat(blocks)[0].content, [text('Scan'), text('old'), text('page'), link]);

  const responses = sent('responses', { messages: messages(words) }).input;
  assert.deepEqual(responses[0].content, [{ type: 'input_text', text: 'Lease\n\nrent' }]);
  assert.deepEqual(responses[2].output, [{ type: 'input_text', text: 'Lease\n\nrent' }]);

  const linked = { type: 'document', title: 'Deed', source: { type: 'url', url: 'https://e.test/a.pdf' } };
  const stored = { type: 'document', title: 'Deed', source: { type: 'file', file_id: 'file_1' } };
  const file = { type: 'input_file', file_url: 'https://e.test/a.pdf' };
  const said = sent('responses', { messages: messages(linked) }).input;
  assert.deepEqual(said[0].content, [{ type: 'input_text', text: 'Deed' }, file]);
  assert.deepEqual(said[2].output, [{ type: 'input_text', text: 'Deed' }, file]);
  assert.deepEqual(chat(stored)[0].content, [text('Deed'), { type: 'file', file: { file_id: 'file_1' } }]);

  const gemini = sent('gemini', { messages: messages(words) }).contents;
  assert.deepEqual(gemini[0].parts, [{ text: 'Lease\n\nrent' }]);
  assert.equal(gemini[2].parts[0].functionResponse.response.output, 'Lease\n\nrent');
});

test('tools that come and go in the middle of a conversation are what they have become', () => {
  const schema = { type: 'object', properties: {} };
  const change = (type: string, tool: JsonObject) => ({ type, tool });
  const reference = (name: string) => ({ type: 'tool_reference', name });
  const define = (name: string, more: JsonObject = {}) => ({
    type: 'tool_definition',
    definition: { name, input_schema: schema, ...more },
  });
  const named = (...changes: JsonObject[]) => {
    const body = sent('chat', {
      tools: ['a', 'b'].map((name) => ({ name, input_schema: schema })),
      messages: [{ role: 'user', content: 'hi' }, ...changes.map((block) => ({ role: 'system', content: [block] }))],
    });
    assert.deepEqual(body.messages, [{ role: 'user', content: 'hi' }]);
    return (body.tools ?? []).map((tool: { function: { name: string } }) => tool.function.name);
  };
  assert.deepEqual(named(change('tool_addition', define('c'))), ['a', 'b', 'c']);
  assert.deepEqual(named(change('tool_removal', reference('a'))), ['b']);
  assert.deepEqual(named(change('tool_removal', reference('a')), change('tool_addition', reference('a'))), ['a', 'b']);
  assert.deepEqual(named(change('tool_addition', define('c')), change('tool_removal', reference('c'))), ['a', 'b']);
  const anew = sent('chat', {
    tools: [{ name: 'a', description: 'old', input_schema: schema }],
    messages: [
      { role: 'user', content: 'hi' },
      { role: 'system', content: [change('tool_removal', reference('a'))] },
      { role: 'system', content: [change('tool_addition', define('a', { description: 'new' }))] },
    ],
  });
  assert.deepEqual(
    anew.tools.map((tool: { function: { description: string } }) => tool.function.description),
    ['new'],
  );
  assert.deepEqual(named(change('tool_removal', { type: 'mcp_toolset', mcp_server_name: 'a' })), ['a', 'b']);
  assert.throws(
    () =>
      named(change('tool_addition', { type: 'tool_definition', definition: { name: 'c', input_schema: { type: 'string' } } })),
    (error: unknown) =>
      error instanceof GatewayError && error.param === 'messages[1].content[0].tool.definition.input_schema.type',
  );
});

test('the effort that a message in the middle sets is the one of the request', () => {
  const turn = (effort: string | null) => ({ role: 'system', output_config: { effort } });
  const effort = (...turns: JsonObject[]) =>
    sent('chat', { output_config: { effort: 'low' }, messages: [{ role: 'user', content: 'hi' }, ...turns] }).reasoning_effort;
  assert.equal(effort(), 'low');
  assert.equal(effort(turn('high')), 'high');
  assert.equal(effort(turn('high'), { ...turn('max'), content: 'think' }), 'max');
  assert.equal(effort(turn(null)), 'low');
});

test('what is said for one turn alone is not said in a later one', () => {
  const passing = { role: 'system', content: 'today', clear_at: 'next_user_message' };
  const said = (...messages: JsonObject[]) =>
    sent('chat', { messages: [{ role: 'user', content: 'hi' }, ...messages] }).messages.map(
      ({ content }: { content: string }) => content,
    );
  const later = [
    { role: 'assistant', content: 'yes' },
    { role: 'user', content: 'go on' },
  ];
  assert.deepEqual(said(passing), ['hi', 'today']);
  assert.deepEqual(said(passing, ...later), ['hi', 'yes', 'go on']);
  assert.deepEqual(said({ ...passing, clear_at: 'never' }, ...later), ['hi', 'today', 'yes', 'go on']);
});

test('a summary in the place of an answer is asked of messages upstreams alone', () => {
  const body = { compaction: { type: 'summarize' }, messages: [{ role: 'user', content: 'hi' }] };
  assert.equal(JSON.stringify(sent('messages', body).compaction), '{"type":"summarize"}');
  for (const dialect of ['chat', 'responses', 'gemini']) {
    assert.throws(
      () => sent(dialect, body),
      (error: unknown) =>
        error instanceof GatewayError && error.code === 'unsupported_conversion' && error.param === 'compaction',
      dialect,
    );
  }
  assert.equal(sent('chat', { ...body, compaction: null }).messages.length, 1);
});
