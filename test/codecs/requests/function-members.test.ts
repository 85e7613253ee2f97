/**
 * Members of functions, of reasoning and of requests that only one vendor has: named where they are lost, kept where the dialect
 * stays.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import type { JsonObject, JsonValue } from '../../../src/codecs/canonical/json.ts';
import type { ModelFacts } from '../../../src/codecs/codec.ts';
import { CLIENTS, UPSTREAMS } from '../../../src/codecs/registry.ts';
import { factsByName } from '../../../src/http/config/thinking-by-name.ts';
import { openForTests, ownerOf, sealForTests, targetOf } from '../../support/wire.ts';

function sent(client: string, upstream: string, body: JsonObject, facts: ModelFacts = {}) {
  const codec = UPSTREAMS.find((each) => each.dialect === upstream) ?? assert.fail();
  const reader = CLIENTS.find((each) => each.dialect === client) ?? assert.fail();
  const request = reader.decodeRequest(JSON.stringify(body), body, { open: openForTests });
  const { body: text, losses } = codec.encodeRequest(request, targetOf(ownerOf(codec), { facts }));
  const json: Record<string, JsonValue> = JSON.parse(text);
  return { json, losses, text };
}

const schema = { type: 'object', properties: {} };
const OTHERS: Readonly<Record<string, readonly string[]>> = {
  responses: ['chat', 'messages', 'gemini'],
  messages: ['chat', 'responses', 'gemini'],
};
const tool = (client: string, name: string, more: JsonObject): JsonObject =>
  client === 'messages'
    ? { name, input_schema: schema, ...more }
    : { type: 'function', name, parameters: schema, strict: false, ...more };
const ask = (client: string, ...tools: JsonObject[]): JsonObject =>
  client === 'messages'
    ? { model: 'm', max_tokens: 99, messages: [{ role: 'user', content: 'q' }], tools }
    : { model: 'm', input: 'q', tools };
const PROGRAM: Readonly<Record<string, string>> = { responses: 'programmatic', messages: 'code_execution_20260120' };

describe('functions', () => {
  it('that only programs may call are not offered as direct ones', () => {
    for (const [client, upstreams] of Object.entries(OTHERS)) {
      const callers = (...list: string[]) => ({ allowed_callers: list });
      const program = PROGRAM[client] ?? '';
      const body = ask(
        client,
        tool(client, 'both', callers('direct', program)),
        tool(client, 'hidden', callers(program)),
        tool(client, 'plain', {}),
      );
      for (const upstream of upstreams) {
        const { text, losses } = sent(client, upstream, body);
        assert.match(text, /"both".*"plain"/, `${client} to ${upstream}`);
        assert.doesNotMatch(text, /hidden|allowed_callers/, `${client} to ${upstream}`);
        assert.ok(losses.includes('function tool: allowed callers') && !losses.includes('unknown members'), losses.join());
      }
      assert.match(sent(client, client, body).text, /"hidden"/, 'its own vendor gets it');
    }
  });

  it('that only programs may call cannot be required', () => {
    const required = (choice: JsonValue, ...names: string[]) => {
      const tools = names.map((name) => tool('responses', name, name === 'hidden' ? { allowed_callers: ['programmatic'] } : {}));
      return { ...ask('responses', ...tools), tool_choice: choice };
    };
    const isRefused = (error: unknown) =>
      error instanceof GatewayError && error.code === 'unsupported_conversion' && error.details.param === 'tool_choice';
    const hidden = { type: 'function', name: 'hidden' };
    for (const upstream of OTHERS['responses'] ?? []) {
      assert.throws(() => sent('responses', upstream, required(hidden, 'hidden', 'plain')), isRefused, upstream);
      assert.throws(() => sent('responses', upstream, required('required', 'hidden')), isRefused, upstream);
      const allowed = { type: 'allowed_tools', mode: 'required', tools: [hidden, { type: 'function', name: 'plain' }] };
      const { text } = sent('responses', upstream, required(allowed, 'hidden', 'plain'));
      assert.doesNotMatch(text, /hidden/);
      const only = { ...allowed, tools: [hidden] };
      assert.throws(() => sent('responses', upstream, required(only, 'hidden', 'plain')), isRefused, upstream);
    }
  });

  it('that are loaded later, answer later or declare their output are offered without that', () => {
    const members = { async: true, output_schema: { type: 'object', title: 'OUT' }, defer_loading: true };
    for (const upstream of OTHERS['responses'] ?? []) {
      const { text, losses } = sent('responses', upstream, ask('responses', tool('responses', 'f', members)));
      assert.match(text, /"f"/);
      assert.doesNotMatch(text, /OUT|defer_loading|async/);
      for (const feature of ['function tool: async', 'function tool: output schema', 'function tool: deferred loading'])
        assert.ok(losses.includes(feature), `${upstream}: ${feature}`);
    }
    const own = ask('responses', tool('responses', 'f', members));
    assert.deepEqual(sent('responses', 'responses', own).json['tools'], own['tools']);
  });

  it('with members of a wrong type are refused at their path', () => {
    const refused = (more: JsonObject): unknown => {
      try {
        return sent('responses', 'chat', ask('responses', tool('responses', 'f', more))).text;
      } catch (error) {
        return error instanceof GatewayError ? error.details.param : error;
      }
    };
    assert.equal(refused({ allowed_callers: 'direct' }), 'tools[0].allowed_callers');
    assert.equal(refused({ allowed_callers: [1] }), 'tools[0].allowed_callers[0]');
    assert.equal(refused({ defer_loading: 'yes' }), 'tools[0].defer_loading');
    assert.equal(refused({ output_schema: [] }), 'tools[0].output_schema');
  });
});

describe('messages', () => {
  const body = (more: JsonObject): JsonObject => ({ ...ask('messages'), tools: [], ...more });
  it('thinking between tools is left to other upstreams, and named', () => {
    const between = body({ thinking: { type: 'between_tools' } });
    for (const upstream of OTHERS['messages'] ?? []) {
      const { text, losses } = sent('messages', upstream, between);
      assert.ok(losses.includes('reasoning between tools'), upstream);
      assert.doesNotMatch(text, /between_tools|reasoning_effort|thinkingBudget/);
    }
    assert.deepEqual(sent('messages', 'messages', between).json['thinking'], { type: 'between_tools' });
  });

  it('fallbacks never choose a model of the upstream, and are named', () => {
    for (const fallbacks of ['default', [{ model: 'other' }]] as const) {
      for (const upstream of ['messages', ...(OTHERS['messages'] ?? [])]) {
        const { text, losses } = sent('messages', upstream, body({ fallbacks }));
        assert.doesNotMatch(text, /fallbacks|other/, upstream);
        assert.ok(losses.includes('fallback models') && !losses.includes('unknown members'), `${upstream}: ${losses.join()}`);
      }
    }
  });
});

describe('gemini', () => {
  it('minimal effort is the level minimal where the model has it', () => {
    const levelOf = (model: string): JsonValue | undefined => {
      const facts = factsByName({ thinking: 'level' }, 'gemini', model);
      const { json } = sent(
        'chat',
        'gemini',
        { model: 'm', messages: [{ role: 'user', content: 'q' }], reasoning_effort: 'minimal' },
        facts,
      );
      return json['generationConfig'];
    };
    assert.deepEqual(levelOf('gemini-3-flash'), { thinkingConfig: { thinkingLevel: 'minimal' } });
    assert.deepEqual(levelOf('gemini-3-pro-preview'), { thinkingConfig: { thinkingLevel: 'low' } });
    assert.deepEqual(levelOf('gemini-3.1-pro'), { thinkingConfig: { thinkingLevel: 'low' } });
  });
});

describe('encrypted reasoning behind its message', () => {
  const owner = { channelType: 'responses' as const, scope: 'https://up.example', model: 'up-model' };
  const reasoningIn = (format: string | undefined) => {
    const opaque = { owner, value: 'secret', itemId: 'rs_1', ...(format === undefined ? {} : { form: format }) };
    return { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: sealForTests(opaque) };
  };
  const history = (format: string | undefined): JsonObject => ({
    model: 'm',
    previous_response_id: 'resp_1',
    input: [
      { role: 'user', content: 'q' },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'a' }] },
      reasoningIn(format),
      { role: 'user', content: 'more' },
    ],
  });
  it('goes only where the rule is its owner’s, OpenAI', () => {
    const held = (format: string | undefined) => /secret/.test(sent('responses', 'responses', history(format)).text);
    assert.equal(held(undefined), false);
    assert.equal(held('openai-responses-v1'), false);
    assert.equal(held('xai-responses-v1'), true);
    assert.equal(held('signature'), true);
  });

  it('stays on the way through messages and chat clients, too', () => {
    const chat = (format: string | undefined) => {
      const data = sealForTests({ owner, value: 'secret', itemId: 'rs_1', ...(format === undefined ? {} : { form: format }) });
      const details = [{ type: 'reasoning.encrypted', data, id: 'rs_1', format: 'unknown', index: 0 }];
      return {
        model: 'm',
        messages: [
          { role: 'user', content: 'q' },
          { role: 'assistant', content: null, reasoning_details: details },
          { role: 'user', content: 'more' },
        ],
      };
    };
    assert.match(sent('chat', 'responses', chat('xai-responses-v1')).text, /secret/);
    assert.doesNotMatch(sent('chat', 'responses', chat(undefined)).text, /secret/);
  });
});
