/** Rule 1: tool identity is kept on chat, messages and generative-content Channels; tools that share a name use namespaces. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { need } from './requests.ts';
import {
  block,
  callDelta,
  convert,
  DONE,
  finish,
  type Json,
  messageEnd,
  messageStart,
  sent,
  through,
  type UpstreamName,
} from '../failures/through.ts';

const parameters = { type: 'object', properties: {} };
const inner = (name: string): object => ({ type: 'function', name, parameters, strict: false });
const TOOLS = [
  { type: 'namespace', name: 'mail', description: 'Mail.', tools: [inner('send'), inner('list')] },
  { type: 'namespace', name: 'chat', description: 'Chat.', tools: [inner('send')] },
];
const call = (name: string, namespace: string, id: string): object => ({
  type: 'function_call',
  call_id: id,
  name,
  namespace,
  arguments: '{}',
});
const INPUT = [
  { role: 'user', content: 'hi' },
  call('send', 'mail', 'a'),
  call('send', 'chat', 'b'),
  { type: 'function_call_output', call_id: 'a', output: 'r' },
  { type: 'function_call_output', call_id: 'b', output: 'r' },
];

function namesOf(upstream: UpstreamName, body: Json): string[] {
  if (upstream === 'chat') return body.tools.map(({ function: { name } }: Json) => name);
  if (upstream === 'messages') return body.tools.map(({ name }: Json) => name);
  return body.tools[0].functionDeclarations.map(({ name }: Json) => name);
}

/** An answer that calls these wire names. */
function answer(upstream: UpstreamName, names: readonly string[]): object[] {
  switch (upstream) {
    case 'chat':
      return [...names.map((name, index) => callDelta(index, `c${index}`, name, '{}')), finish('tool_calls')];
    case 'messages':
      return [
        messageStart(),
        ...names.flatMap((name, index) =>
          block(index, { type: 'tool_use', id: `c${index}`, name, input: {} }, { type: 'input_json_delta', partial_json: '{}' }),
        ),
        ...messageEnd('tool_use'),
      ];
    default:
      return [
        {
          candidates: [
            {
              content: { role: 'model', parts: names.map((name) => ({ functionCall: { name, args: {} } })) },
              finishReason: 'STOP',
            },
          ],
        },
      ];
  }
}

for (const upstream of ['chat', 'messages', 'gemini'] as const) {
  test(`rule 1: namespaced tools go to a ${upstream} upstream under unique legal names, in history too, and come back as they were`, () => {
    const out = sent('responses', upstream, { input: INPUT, tools: TOOLS });
    const body = JSON.parse(out.body);
    const names = namesOf(upstream, body);
    assert.equal(new Set(names).size, 3);
    for (const name of names) assert.match(name, /^[A-Za-z0-9_-]{1,64}$/);
    for (const name of [names[0], names[2]])
      assert.ok(JSON.stringify(body.messages ?? body.contents).includes(`"name":"${name}"`));
    const heard = through(upstream, 'responses', [...answer(upstream, names), ...(upstream === 'chat' ? [DONE] : [])], {
      toolNames: out.toolNames,
    });
    const identity = ({ name, namespace }: Json): unknown => [namespace, name];
    const wanted = [
      ['mail', 'send'],
      ['mail', 'list'],
      ['chat', 'send'],
    ];
    assert.deepEqual(heard.body.output.map(identity), wanted);
    const done = heard.events.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => identity(item));
    assert.deepEqual(done, wanted);
  });

  test(`rule 1: a chosen namespaced tool is chosen under its wire name on ${upstream}`, () => {
    const tool_choice = { type: 'function', name: 'send', namespace: 'chat' };
    const body = convert('responses', upstream, { input: 'x', tools: TOOLS, tool_choice });
    assert.ok(JSON.stringify(body.tool_choice ?? body.toolConfig).includes(`"${namesOf(upstream, body)[2]}"`));
  });
}

test('a choice among tools of which none exists on the upstream: no tool where it may be none, an error where it must be one', () => {
  const tools = [{ type: 'function', name: 'f', parameters: { type: 'object', properties: {} } }, { type: 'web_search' }];
  const choice = (mode: string) => ({
    input: 'x',
    tools,
    tool_choice: { type: 'allowed_tools', mode, tools: [{ type: 'web_search' }] },
  });
  assert.equal(convert('responses', 'chat', choice('auto')).tool_choice, 'none');
  for (const upstream of ['messages', 'gemini'] as const)
    assert.equal(convert('responses', upstream, choice('auto')).tools, undefined);
  for (const upstream of ['chat', 'messages', 'gemini'] as const) {
    assert.throws(
      () => convert('responses', upstream, choice('required')),
      need({ code: 'unsupported_conversion', param: /^tool_choice$/ }),
    );
  }
});
