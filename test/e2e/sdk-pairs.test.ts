/**
 * The official SDKs, unmodified, over every pair of client protocol and form of upstream, on real sockets: text, tools over two
 * turns, reasoning that must come back to the upstream that made it. The upstream is the strict simulator, which refuses what
 * vendors refuse.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import OpenAI from 'openai';
import type { Simulator } from '../../src/simulator/simulator.ts';
import { KEY, type TestGateway, testGateway } from '../support/test-gateway.ts';
import { formsConfig, startVendors, upstreamForms } from '../support/upstream-forms.ts';

const FORMS = upstreamForms(import.meta.filename);
const TOOL = {
  name: 'get_weather',
  description: 'The weather of a city',
  schema: {
    type: 'object' as const,
    properties: { city: { type: 'string' as const } },
    required: ['city'],
    additionalProperties: false,
  },
};
const QUESTION = 'What is the weather in Kyoto? Use get_weather.';

let simulator: Simulator;
let gateway: TestGateway;
let openai: OpenAI;
let anthropic: Anthropic;

before(async () => {
  simulator = await startVendors({ pace: { ms: 0 } });
  gateway = await testGateway(formsConfig(FORMS, simulator.url));
  openai = new OpenAI({ apiKey: KEY, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
  anthropic = new Anthropic({ apiKey: KEY, baseURL: gateway.url, maxRetries: 0 });
});

after(async () => {
  await gateway[Symbol.asyncDispose]();
  await simulator.close();
});

/** What the upstream says next: the same for every pair. */
function scripted(): void {
  simulator.enqueue({
    reply: { pieces: [{ type: 'text', text: ['Water ', 'finds ', 'its ', 'level 水.'] }], usage: { input: 21, output: 9 } },
  });
}
const SAID = 'Water finds its level 水.';

for (const { name: model, type } of FORMS) {
  describe(`upstream ${model}`, () => {
    test('openai chat.completions: text, whole and streamed', async () => {
      scripted();
      const whole = await openai.chat.completions.create({ model, messages: [{ role: 'user', content: 'hi' }] });
      assert.equal(whole.choices[0]?.message.content, SAID);
      assert.deepEqual([whole.usage?.prompt_tokens, whole.usage?.completion_tokens, whole.model], [21, 9, model]);
      scripted();
      const stream = openai.chat.completions.stream({
        model,
        messages: [{ role: 'user', content: 'hi' }],
        stream_options: { include_usage: true },
      });
      const final = await stream.finalChatCompletion();
      assert.equal(final.choices[0]?.message.content, SAID);
      assert.equal(final.choices[0]?.finish_reason, 'stop');
      assert.equal(final.usage?.total_tokens, 30);
    });

    test('openai responses: text, whole and streamed', async () => {
      scripted();
      const whole = await openai.responses.create({ model, input: 'hi', store: false });
      assert.equal(whole.output_text, SAID);
      assert.match(whole.id, /^resp_mizu_[0-9a-f]{32}$/);
      scripted();
      const final = await openai.responses.stream({ model, input: 'hi', store: false }).finalResponse();
      assert.equal(final.output_text, SAID);
      assert.deepEqual([final.status, final.usage?.total_tokens, final.model], ['completed', 30, model]);
    });

    test('anthropic messages: text, whole and streamed', async () => {
      scripted();
      const whole = await anthropic.messages.create({ model, max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] });
      assert.deepEqual(
        whole.content.map((block) => (block.type === 'text' ? block.text : block.type)),
        [SAID],
      );
      scripted();
      const final = await anthropic.messages
        .stream({ model, max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] })
        .finalMessage();
      assert.equal(final.content[0]?.type === 'text' && final.content[0].text, SAID);
      assert.deepEqual([final.stop_reason, final.usage.input_tokens, final.usage.output_tokens], ['end_turn', 21, 9]);
    });

    for (const streamed of [false, true]) {
      test(`openai chat.completions: a tool and its result over two turns, with reasoning, ${streamed ? 'streamed' : 'whole'}`, async () => {
        const messages: OpenAI.Chat.ChatCompletionMessageParam[] = [{ role: 'user', content: QUESTION }];
        const tools = [
          { type: 'function' as const, function: { name: TOOL.name, description: TOOL.description, parameters: TOOL.schema } },
        ];
        const ask = async (): Promise<OpenAI.Chat.ChatCompletionMessage> => {
          const body = { model, messages, tools, reasoning_effort: 'low' as const };
          if (!streamed)
            return (await openai.chat.completions.create(body)).choices[0]?.message as OpenAI.Chat.ChatCompletionMessage;
          return (await openai.chat.completions.stream(body).finalChatCompletion()).choices[0]
            ?.message as OpenAI.Chat.ChatCompletionMessage;
        };
        const called = await ask();
        const call = called.tool_calls?.[0];
        assert.ok(call?.type === 'function' && call.function.name === TOOL.name, JSON.stringify(called));
        assert.equal(typeof JSON.parse(call.function.arguments).city, 'string');
        messages.push(called, { role: 'tool', tool_call_id: call.id, content: 'Sunny, 21 degrees.' });
        const answer = await ask();
        assert.ok((answer.content ?? '').length > 0, JSON.stringify(answer));
      });

      test(`openai responses: a tool and its result over two turns, with reasoning, ${streamed ? 'streamed' : 'whole'}`, async () => {
        const input: OpenAI.Responses.ResponseInputItem[] = [{ role: 'user', content: QUESTION }];
        const tools = [
          { type: 'function' as const, name: TOOL.name, description: TOOL.description, parameters: TOOL.schema, strict: false },
        ];
        const ask = (): Promise<OpenAI.Responses.Response> => {
          const body = {
            model,
            input,
            tools,
            store: false,
            include: ['reasoning.encrypted_content' as const],
            reasoning: { effort: 'low' as const, summary: 'auto' as const },
          };
          return streamed ? openai.responses.stream(body).finalResponse() : openai.responses.create(body);
        };
        const called = await ask();
        const call = called.output.find((item) => item.type === 'function_call');
        assert.ok(call !== undefined && call.type === 'function_call', JSON.stringify(called.output));
        assert.equal(call.name, TOOL.name);
        input.push(...(called.output as OpenAI.Responses.ResponseInputItem[]), {
          type: 'function_call_output',
          call_id: call.call_id,
          output: 'Sunny, 21 degrees.',
        });
        const answer = await ask();
        assert.ok(answer.output_text.length > 0, JSON.stringify(answer.output));
      });

      test(`anthropic messages: a tool and its result over two turns, with thinking, ${streamed ? 'streamed' : 'whole'}`, async () => {
        const messages: Anthropic.MessageParam[] = [{ role: 'user', content: QUESTION }];
        const ask = (): Promise<Anthropic.Message> => {
          const body = {
            model,
            max_tokens: 4000,
            messages,
            thinking: { type: 'enabled' as const, budget_tokens: 1024 },
            tools: [{ name: TOOL.name, description: TOOL.description, input_schema: TOOL.schema }],
          };
          return streamed ? anthropic.messages.stream(body).finalMessage() : anthropic.messages.create(body);
        };
        const called = await ask();
        assert.equal(called.stop_reason, 'tool_use', JSON.stringify(called));
        const call = called.content.find((block) => block.type === 'tool_use');
        assert.ok(call?.type === 'tool_use' && call.name === TOOL.name);
        messages.push(
          { role: 'assistant', content: called.content },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: 'Sunny, 21 degrees.' }] },
        );
        const answer = await ask();
        assert.ok(
          answer.content.some((block) => block.type === 'text' && block.text.length > 0),
          JSON.stringify(answer),
        );
      });

      test(`anthropic tool runner, which asks for a thread: each turn has the whole conversation, ${streamed ? 'streamed' : 'whole'}`, async () => {
        const city = (name: string) => ({ type: 'tool' as const, name: TOOL.name, arguments: JSON.stringify({ city: name }) });
        for (const piece of [city('Kyoto'), city('Nara'), city('Uji'), { type: 'text' as const, text: 'Sunny.' }])
          simulator.enqueue({ reply: { pieces: [piece] } });
        const asked: string[] = [];
        const run = async (input: unknown) => {
          asked.push(JSON.stringify(input));
          return 'Sunny, 21 degrees.';
        };
        const runner = anthropic.beta.messages.toolRunner({
          model,
          max_tokens: 4000,
          messages: [{ role: 'user', content: QUESTION }],
          tools: [betaTool({ name: TOOL.name, description: TOOL.description, inputSchema: TOOL.schema, run })],
          stream: streamed,
        });
        const answer = await runner.runUntilDone();
        assert.deepEqual(asked, ['{"city":"Kyoto"}', '{"city":"Nara"}', '{"city":"Uji"}']);
        const [said] = answer.content;
        assert.equal(said?.type === 'text' && said.text, 'Sunny.', JSON.stringify(answer));
        const last = simulator.requests.at(-1);
        for (const name of ['Kyoto', 'Nara', 'Uji']) assert.ok(JSON.stringify(last?.body).includes(name), name);
      });
    }

    test('reasoning comes in its own place for each client', async () => {
      const reason = (): void =>
        simulator.enqueue({
          reply: {
            pieces: [
              {
                type: 'reasoning',
                ...(type === 'chat_completion' ? { raw: 'Think of rivers.' } : { summary: ['Think of rivers.'], opaque: true }),
              },
              { type: 'text', text: 'Down.' },
            ],
          },
        });
      reason();
      const response = await openai.responses.create({
        model,
        input: 'hi',
        store: false,
        reasoning: { effort: 'low', summary: 'auto' },
        include: ['reasoning.encrypted_content'],
      });
      const item = response.output.find(({ type }) => type === 'reasoning');
      assert.ok(JSON.stringify(item).includes('Think of rivers.'), JSON.stringify(response.output));
      assert.equal(response.output_text, 'Down.');
      reason();
      const message = await anthropic.messages.create({
        model,
        max_tokens: 2000,
        thinking: { type: 'enabled', budget_tokens: 1024 },
        messages: [{ role: 'user', content: 'hi' }],
      });
      assert.deepEqual(
        message.content.map(({ type }) => type),
        ['thinking', 'text'],
      );
      assert.ok(message.content[0]?.type === 'thinking' && message.content[0].thinking === 'Think of rivers.');
      reason();
      const chat = await openai.chat.completions.create({
        model,
        reasoning_effort: 'low',
        messages: [{ role: 'user', content: 'hi' }],
      });
      assert.ok(JSON.stringify(chat.choices[0]?.message).includes('Think of rivers.'));
      assert.equal(chat.choices[0]?.message.content, 'Down.');
    });

    test('F27, V16: a stream that the upstream cuts is an error for every SDK, never a short answer', async () => {
      const cut = (): void =>
        simulator.enqueue({
          reply: { pieces: [{ type: 'text', text: ['one ', 'two ', 'three ', 'four '] }] },
          pace: { ms: 1 },
          faults: [{ type: 'cut', at: type === 'gemini' ? 2 : 6 }],
        });
      cut();
      await assert.rejects(
        openai.chat.completions.stream({ model, messages: [{ role: 'user', content: 'hi' }] }).finalChatCompletion(),
      );
      cut();
      const response = await openai.responses.stream({ model, input: 'hi', store: false }).finalResponse();
      assert.equal(response.status, 'failed');
      cut();
      await assert.rejects(
        anthropic.messages.stream({ model, max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] }).finalMessage(),
      );
    });
  });
}
