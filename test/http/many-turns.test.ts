/**
 * One conversation with tools and reasoning that moves between upstreams of all dialects and clouds, turn by turn, through the
 * whole gateway, by whole answers and by streams. The simulated vendors are strict: one that meets a history it would not take
 * fails the turn, and so does a signature that another vendor made.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Simulator } from '../../src/simulator/simulator.ts';
import { type TestGateway, testGateway } from '../support/test-gateway.ts';
import { formChannel, startVendors, upstreamForms } from '../support/upstream-forms.ts';
import { drawn } from '../support/sampled.ts';

// Vendor and gateway JSON, read as it comes.
type Json = ReturnType<typeof JSON.parse>;

const FORMS = upstreamForms(import.meta.filename);
const TURNS = 9;
const PARAMETERS = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };

let simulators: Simulator[];
let gateway: TestGateway;

before(async () => {
  simulators = await Promise.all(FORMS.map(() => startVendors({ pace: { ms: 0 } })));
  gateway = await testGateway({
    channels: FORMS.map((form, index) =>
      formChannel(form, simulators[index]?.url ?? '', { models: { [`on-${form.name}`]: `sim-${form.type}` } }),
    ),
    models: Object.fromEntries(FORMS.map(({ name }) => [`on-${name}`, { price: { input: '1', output: '2' } }])),
  });
});
after(async () => {
  await gateway[Symbol.asyncDispose]();
  for (const simulator of simulators) await simulator.close();
});

/** A client of one dialect that keeps the whole history itself, as agents do. */
interface Agent {
  readonly path: string;
  body(model: string): object;
  ask(text: string): void;
  /** Takes the answer into the history and runs the calls in it. Returns how many there were. */
  take(answer: Json): number;
  /** The answer that the events of a stream amount to, as this agent's kind reads them. */
  gather(events: readonly Json[]): Json;
}

function chatAgent(): Agent {
  const messages: Json[] = [{ role: 'system', content: 'Be brief.' }];
  return {
    path: '/v1/chat/completions',
    ask: (text) => void messages.push({ role: 'user', content: text }),
    body: (model) => ({
      model,
      messages,
      reasoning_effort: 'low',
      tools: [{ type: 'function', function: { name: 'get_weather', parameters: PARAMETERS } }],
    }),
    take({ choices: [{ message }] }) {
      messages.push(message);
      for (const call of message.tool_calls ?? []) messages.push({ role: 'tool', tool_call_id: call.id, content: 'sunny' });
      return (message.tool_calls ?? []).length;
    },
    gather(events) {
      const message: Json = { role: 'assistant', content: null };
      for (const { choices } of events) {
        const { delta } = choices[0] ?? { delta: {} };
        for (const [key, value] of Object.entries<Json>(delta)) {
          if (key === 'tool_calls') for (const piece of value) gatherCall(message, piece);
          else if (Array.isArray(value)) message[key] = [...(message[key] ?? []), ...value];
          else if (key !== 'role' && value !== null) message[key] = (message[key] ?? '') + value;
        }
      }
      return { choices: [{ message }] };
    },
  };
}

function gatherCall(message: Json, { index, function: said, ...head }: Json): void {
  message.tool_calls ??= [];
  const calls = message.tool_calls;
  calls[index] ??= { ...head, function: { name: '', arguments: '' } };
  calls[index].function.name += said?.name ?? '';
  calls[index].function.arguments += said?.arguments ?? '';
}

function responsesAgent(): Agent {
  const input: Json[] = [];
  return {
    path: '/v1/responses',
    ask: (text) => void input.push({ role: 'user', content: [{ type: 'input_text', text }] }),
    body: (model) => ({
      model,
      instructions: 'Be brief.',
      input,
      store: false,
      include: ['reasoning.encrypted_content'],
      reasoning: { effort: 'low', summary: 'auto' },
      tools: [{ type: 'function', name: 'get_weather', parameters: PARAMETERS, strict: false }],
    }),
    take({ output }) {
      const calls = output.filter(({ type }: Json) => type === 'function_call');
      input.push(...output);
      for (const { call_id } of calls) input.push({ type: 'function_call_output', call_id, output: 'sunny' });
      return calls.length;
    },
    // Coding agents read finished items and nothing else.
    gather: (events) => ({ output: events.flatMap(({ type, item }) => (type === 'response.output_item.done' ? [item] : [])) }),
  };
}

function messagesAgent(): Agent {
  const messages: Json[] = [];
  let results: Json[] = [];
  return {
    path: '/v1/messages',
    ask(text) {
      messages.push({ role: 'user', content: [...results, { type: 'text', text }] });
      results = [];
    },
    body(model) {
      if (results.length > 0) messages.push({ role: 'user', content: results });
      results = [];
      return {
        model,
        system: 'Be brief.',
        max_tokens: 32_000,
        messages,
        thinking: { type: 'enabled', budget_tokens: 2_000 },
        tools: [{ name: 'get_weather', input_schema: PARAMETERS }],
      };
    },
    take({ content }) {
      const calls = content.filter(({ type }: Json) => type === 'tool_use');
      messages.push({ role: 'assistant', content });
      results = calls.map(({ id }: Json) => ({ type: 'tool_result', tool_use_id: id, content: 'sunny' }));
      return calls.length;
    },
    gather(events) {
      const content: Json[] = [];
      const inputs: string[] = [];
      for (const { type, index, content_block, delta } of events) {
        if (type === 'content_block_start') content[index] = { ...content_block };
        if (type !== 'content_block_delta') continue;
        if (delta.type === 'text_delta') content[index].text += delta.text;
        if (delta.type === 'thinking_delta') content[index].thinking += delta.thinking;
        if (delta.type === 'signature_delta') content[index].signature = delta.signature;
        if (delta.type === 'input_json_delta') inputs[index] = (inputs[index] ?? '') + delta.partial_json;
      }
      for (const [index, input] of inputs.entries()) if (input !== undefined) content[index].input = JSON.parse(input);
      return { content };
    },
  };
}

/** The JSON of each event of a stream that ended well. */
function eventsOf(stream: string): Json[] {
  assert.doesNotMatch(stream, /^event: error|"error":\{/m);
  return [...stream.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => JSON.parse(data ?? ''));
}

describe('a conversation of many turns moves between the four dialects', () => {
  for (const agentOf of [chatAgent, responsesAgent, messagesAgent]) {
    const ways = [...FORMS.keys()].flatMap((first) => [[first, false] as const, [first, true] as const]);
    for (const [offset, stream] of drawn(ways, 4, agentOf.name)) {
      test(`${agentOf.name}, ${stream ? 'streams' : 'whole answers'}, first turn on ${FORMS[offset]?.name}`, async () => {
        const agent = agentOf();
        const heard = () => simulators.flatMap(({ requests }) => requests).length;
        let calls = 0;
        let thoughts = 0;
        let asked = 0;
        let open = false;
        for (let turn = 0; turn < TURNS; turn += 1) {
          const { name } = FORMS[(turn + offset) % FORMS.length] ?? assert.fail();
          if (!open) agent.ask(`What is the weather in city ${turn}? Call get_weather.`);
          const before = heard();
          const response = await gateway.post(agent.path, { ...agent.body(`on-${name}`), stream });
          const text = await response.text();
          assert.equal(response.status, 200, `turn ${turn} on ${name}: ${text}`);
          asked += heard() - before;
          const count = agent.take(stream ? agent.gather(eventsOf(text)) : JSON.parse(text));
          calls += count;
          if (/"type":"(thinking|reasoning[a-z._]*)"|"reasoning_content":"/.test(text)) thoughts += 1;
          open = count > 0;
        }
        assert.ok(calls >= 3, 'tools were called');
        assert.ok(thoughts >= 3, 'the models reasoned');
        assert.equal(asked, TURNS, 'no turn was tried twice');
      });
    }
  }
});
