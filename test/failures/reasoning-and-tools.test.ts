/** Ledger sections 4 to 6: gemini's rest, reasoning with its opaque values, tool identity. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Opaque } from '../../src/codecs/canonical/opaque.ts';
import { ownerOf, sealForTests } from '../support/wire.ts';
import { gatewayError } from './gateway-error.ts';
import {
  block,
  callDelta,
  convert,
  created,
  delta,
  DONE,
  doneMessage,
  finish,
  type Json,
  messageEnd,
  messageItem,
  messageStart,
  say,
  sent,
  terminal,
  through,
  upstreamOf,
  type UpstreamName,
} from './through.ts';

const hi = { role: 'user', content: 'hi' };
const sealedFor = (name: UpstreamName, value: string, more: Partial<Opaque> = {}): string =>
  sealForTests({ owner: ownerOf(upstreamOf(name)), value, ...more });
const rs = (encrypted_content: string, id = 'rs_client'): object => ({ id, type: 'reasoning', summary: [], encrypted_content });
const assistant = { role: 'assistant', content: 'x' };
const geminiChunk = (parts: readonly object[], finishReason?: string): object => ({
  candidates: [{ content: { role: 'model', parts }, ...(finishReason === undefined ? {} : { finishReason }) }],
});

describe('gemini, the rest', () => {
  test('G10: a document of text in a tool result is said in the result, with its title', () => {
    const call = { type: 'tool_use', id: 'a', name: 'f', input: {} };
    const document = { type: 'document', title: 'T', source: { type: 'text', media_type: 'text/plain', data: 'plain' } };
    const result = { type: 'tool_result', tool_use_id: 'a', content: [document] };
    const turns = [hi, { role: 'assistant', content: [call] }, { role: 'user', content: [result] }];
    const { parts } = convert('messages', 'gemini', { max_tokens: 9, messages: turns }).contents.at(-1);
    assert.deepEqual(parts[0].functionResponse.response, { output: 'T\n\nplain' });
  });

  test('G11: sources that every chunk repeats are cited once', () => {
    const groundingMetadata = {
      groundingChunks: [{ web: { uri: 'https://a.example', title: 'A' } }],
      groundingSupports: [{ segment: { startIndex: 0, endIndex: 2, text: 'ab' }, groundingChunkIndices: [0] }],
    };
    const chunk = (text: string, more: object = {}) => ({
      candidates: [{ content: { role: 'model', parts: [{ text }] }, groundingMetadata, ...more }],
    });
    const { body } = through('gemini', 'responses', [chunk('ab'), chunk('cd', { finishReason: 'STOP' })]);
    const [{ text, annotations }] = body.output[0].content;
    assert.deepEqual([text, annotations.map(({ url }: Json) => url)], ['abcd', ['https://a.example']]);
  });

  test('G1: the signature of a call comes back to its call through every client, also over the compatible endpoint', () => {
    const signed = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } };
    const mark = (thought_signature: string): object => ({ extra_content: { google: { thought_signature } } });
    const call = delta({ tool_calls: [{ index: 0, ...signed, ...mark('SIG') }] });
    const heard = (client: 'responses' | 'messages') => {
      const { text, body } = through('chat', client, [call, finish('tool_calls'), DONE]);
      assert.doesNotMatch(text, /"SIG"/);
      return body;
    };
    const back = (client: 'chat' | 'responses' | 'messages', body: object): Json =>
      convert(client, 'chat', body).messages.find(({ role }: Json) => role === 'assistant').tool_calls;
    const wanted = [{ ...signed, ...mark('SIG') }];
    const { output } = heard('responses');
    const answered = { type: 'function_call_output', call_id: 'call_1', output: 'r' };
    assert.deepEqual(back('responses', { input: [hi, ...output, answered] }), wanted);
    const { content } = heard('messages');
    const results = [{ type: 'tool_result', tool_use_id: 'call_1', content: 'r' }];
    const turns = [hi, { role: 'assistant', content }, { role: 'user', content: results }];
    assert.deepEqual(back('messages', { max_tokens: 5, messages: turns }), wanted);
    const sealed = sealedFor('chat', 'SIG', { form: 'extra_content' });
    const native = through('chat', 'chat', [call, finish('tool_calls'), DONE]).events[0].choices[0].delta;
    assert.deepEqual(native.tool_calls, [{ index: 0, ...signed, ...mark(sealed) }]);
    const asked = (value: string): object[] => [hi, { role: 'assistant', tool_calls: [{ ...signed, ...mark(value) }] }];
    assert.deepEqual(back('chat', { messages: asked(sealed) }), wanted);
    const foreign = sealedFor('gemini', 'SIG', { form: 'functionCall' });
    assert.deepEqual(back('chat', { messages: asked(foreign) }), [signed]);
  });

  test('the signature of a text over the compatible endpoint is sealed for its owner, stream and whole, and comes back to it alone', () => {
    const mark = (thought_signature: string): object => ({ extra_content: { google: { thought_signature } } });
    const sealed = sealedFor('chat', 'SIG', { form: 'extra_content' });
    const { events, body } = through('chat', 'chat', [delta({ ...assistant, ...mark('SIG') }), finish('stop'), DONE]);
    assert.deepEqual(events[0].choices[0].delta, { ...assistant, ...mark(sealed) });
    assert.equal(body.choices[0].message.content, 'x');
    const back = (value: string): Json =>
      convert('chat', 'chat', { messages: [hi, { ...assistant, ...mark(value) }, hi] }).messages[1];
    assert.deepEqual(back(sealed), { ...assistant, ...mark('SIG') });
    assert.deepEqual(back(sealedFor('gemini', 'SIG', { form: 'functionCall' })), assistant);
  });

  test('G5: a part of a megabyte arrives whole, and no byte of the source reaches the client', () => {
    const signature = 'A'.repeat(1_200_000);
    const { text, body } = through('gemini', 'chat', [
      geminiChunk([{ functionCall: { name: 'f', args: {} }, thoughtSignature: signature }], 'STOP'),
    ]);
    assert.equal(body.choices[0].message.tool_calls.length, 1);
    assert.doesNotMatch(text, /thoughtSignature|candidates/);
  });

  test('G6: streams are asked for as SSE', () => {
    assert.match(sent('chat', 'gemini', { messages: [hi], stream: true }).path, /:streamGenerateContent\?alt=sse$/);
  });

  test('G11: text that the end repeats is said once', () => {
    const { body } = through('responses', 'chat', [
      created(),
      ...messageItem(0, 'msg_1', 'hello'),
      terminal('completed', [doneMessage('msg_1', 'hello')]),
    ]);
    assert.equal(body.choices[0].message.content, 'hello');
  });
});

describe('reasoning, signatures and opaque values', () => {
  test('S1: a value goes back under the id that it belongs to, whatever id the client sends', () => {
    const { input } = convert('responses', 'responses', {
      input: [hi, rs(sealedFor('responses', 'ENC', { itemId: 'rs_vendor' })), assistant],
    });
    assert.deepEqual([input[1].id, input[1].encrypted_content], ['rs_vendor', 'ENC']);
  });

  test('S2: values of another scope are stripped, and after a refusal all are, while the rest stays', () => {
    const foreign = sealForTests({
      owner: { channelType: 'responses', scope: 'https://other.example', model: 'm' },
      value: 'ENC',
    });
    const body = { input: [hi, rs(foreign), assistant, hi] };
    assert.doesNotMatch(JSON.stringify(convert('responses', 'responses', body)), /ENC|mz2|reasoning/);
    const own = { input: [hi, rs(sealedFor('responses', 'ENC')), assistant, hi] };
    const retried = convert('responses', 'responses', own, { without: new Set(['opaque'] as const) });
    assert.equal(retried.input.length, 3);
  });

  test('S3: a foreign ciphertext is dropped, the call beside it survives', () => {
    const content = [
      { type: 'redacted_thinking', data: sealedFor('responses', 'ENC') },
      { type: 'tool_use', id: 'a', name: 'f', input: {} },
    ];
    const messages = [
      hi,
      { role: 'assistant', content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'r' }] },
    ];
    const out = convert('messages', 'messages', { max_tokens: 10, messages });
    assert.deepEqual(
      out.messages[1].content.map(({ type }: Json) => type),
      ['tool_use'],
    );
  });

  test('S3 G3 S10: raw vendor values of a client stay in its own protocol, whatever else of the turn goes on', () => {
    const said = { type: 'text', text: 'x' };
    const thinking = { type: 'thinking', thinking: 'hm', signature: 'RAW-SIG' };
    const redacted = { type: 'redacted_thinking', data: 'RAW-DATA' };
    const detail = { type: 'reasoning.text', text: 'hm', signature: 'RAW-SIG', index: 0, format: 'anthropic-claude-v1' };
    const sealedDetail = { type: 'reasoning.encrypted', data: 'RAW-DATA', index: 1, format: 'openai-responses-v1' };
    const item = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'x', annotations: [] }] };
    const bodies = {
      chat: { messages: [hi, { ...assistant, reasoning_details: [detail, sealedDetail], reasoning_opaque: 'RAW-OP' }, hi] },
      messages: { max_tokens: 9, messages: [hi, { role: 'assistant', content: [thinking, redacted, said] }, hi] },
      responses: { input: [hi, rs('RAW-ENC', 'rs_1'), item, hi] },
    };
    for (const client of ['chat', 'messages', 'responses'] as const) {
      for (const upstream of ['chat', 'messages', 'responses', 'gemini'] as const) {
        const { body } = sent(client, upstream, bodies[client]);
        assert.equal(body.includes('RAW-'), client === upstream, `${client} to ${upstream}: ${body}`);
        assert.match(body, /"x"/);
      }
    }
  });

  test('S4: a client that keeps thinking and signature alone gives id and value back; an unknown one is dropped', () => {
    const thinking = { type: 'thinking', thinking: 'hm', signature: sealedFor('responses', 'ENC', { itemId: 'rs_vendor' }) };
    const ask = (signature: string) =>
      convert('messages', 'responses', {
        max_tokens: 10,
        messages: [
          hi,
          {
            role: 'assistant',
            content: [
              { ...thinking, signature },
              { type: 'text', text: 'x' },
            ],
          },
          hi,
        ],
      });
    const kept = ask(thinking.signature).input.find(({ type }: Json) => type === 'reasoning');
    assert.deepEqual([kept.id, kept.encrypted_content], ['rs_vendor', 'ENC']);
    assert.doesNotMatch(JSON.stringify(ask('mz2.broken')), /broken|reasoning"/);
  });

  test('S5: fragments of one identity are one item with its late signature; other indices stay apart', () => {
    const detail = (members: object): object =>
      delta({ reasoning_details: [{ type: 'reasoning.text', format: 'anthropic-claude-v1', ...members }] });
    const { whole } = through('chat', 'chat', [
      detail({ index: 0, text: 'a' }),
      detail({ index: 0, text: 'b' }),
      detail({ index: 0, signature: 'SIG0' }),
      detail({ index: 1, text: 'c' }),
      detail({ index: 1, signature: 'SIG1' }),
      delta({ content: 'x' }),
      finish('stop'),
      DONE,
    ]);
    const items = whole?.items.flatMap(({ item }) => (item.kind === 'reasoning' ? [[item.raw, item.opaque?.value]] : []));
    assert.deepEqual(items, [
      ['ab', 'SIG0'],
      ['c', 'SIG1'],
    ]);
  });

  test('S9: an opaque scalar that the final message repeats is one value (rule 12)', () => {
    const message = { role: 'assistant', content: 'x', reasoning_opaque: 'OP' };
    const { whole } = through('chat', 'responses', [
      delta({ reasoning_text: 'hm', reasoning_opaque: 'OP' }),
      { id: 'c', choices: [{ index: 0, delta: {}, message, finish_reason: 'stop' }] },
      DONE,
    ]);
    const values = whole?.items.flatMap(({ item }) => (item.kind === 'reasoning' ? [item.opaque?.value] : []));
    assert.deepEqual(values, ['OP']);
  });

  test('S12: a signature that a block begins with, or that stands in message_start, is sealed for messages clients', () => {
    const thinking = { type: 'thinking', thinking: 'hm', signature: 'RAWSIG' };
    const begun = through('messages', 'messages', [messageStart(), ...block(0, thinking), ...messageEnd('end_turn')]);
    assert.doesNotMatch(begun.text, /RAWSIG/);
    assert.equal(begun.events.find(({ type }) => type === 'content_block_start').content_block.signature, '');
    const deltas = begun.events.flatMap(({ delta: piece }) => (piece?.type === 'signature_delta' ? [piece.signature] : []));
    assert.deepEqual(deltas, [sealedFor('messages', 'RAWSIG')]);

    const start: Json = messageStart();
    start.message.content = [thinking, { type: 'text', text: 'x' }];
    const text = block(0, { type: 'text', text: '' }, say('y'));
    const { events, text: said } = through('messages', 'messages', [start, ...text, ...messageEnd('end_turn')]);
    assert.doesNotMatch(said, /RAWSIG/);
    assert.equal(events[0].message.content[0].signature, sealedFor('messages', 'RAWSIG'));
    assert.equal(events[1].index, 2, 'what message_start holds is counted');
  });

  test('S6: unsigned thinking of a messages client goes back as reasoning_content where a Channel asks for it', () => {
    const content = [
      { type: 'thinking', thinking: 'hm', signature: '' },
      { type: 'text', text: 'x' },
    ];
    const body = { max_tokens: 9, messages: [hi, { role: 'assistant', content }, hi] };
    const { messages } = convert('messages', 'chat', body, { options: { replayReasoningContent: true } });
    assert.deepEqual(messages[1], { role: 'assistant', content: 'x', reasoning_content: 'hm' });
    assert.deepEqual(convert('messages', 'chat', body).messages[1], assistant);
  });

  test('S6: reasoning in incoming chat history is read, details and scalars', () => {
    const detail = { type: 'reasoning.encrypted', data: sealedFor('messages', 'SIG'), format: 'unknown', index: 0 };
    const message = {
      role: 'assistant',
      content: 'x',
      reasoning_details: [{ type: 'reasoning.summary', summary: 'hm', format: 'unknown', index: 0 }, detail],
    };
    const { messages } = convert('chat', 'messages', { messages: [hi, message, hi] });
    assert.deepEqual(messages[1].content[0], { type: 'thinking', thinking: 'hm', signature: 'SIG' });
    const raw = convert('chat', 'responses', { messages: [hi, { ...assistant, reasoning_content: 'hm' }, hi] });
    assert.match(JSON.stringify(raw.input), /"reasoning_text","text":"hm"/);
  });

  test('S7: an empty reasoning_content stays empty and is not left out', () => {
    const messages = [hi, { ...assistant, reasoning_content: '' }, hi];
    assert.equal(convert('chat', 'chat', { messages }).messages[1].reasoning_content, '');
  });

  test('S8: a null signature is accepted; unsigned thinking stays away where signatures are required', () => {
    const thinking = { type: 'thinking', thinking: 'hm', signature: null };
    const { body } = through('messages', 'messages', [
      messageStart(),
      ...block(0, thinking),
      ...block(1, { type: 'text', text: '' }, say('x')),
      ...messageEnd('end_turn'),
    ]);
    assert.equal(body.content.at(-1).text, 'x');
    const { messages } = convert('chat', 'messages', { messages: [hi, { ...assistant, reasoning_content: 'hm' }, hi] });
    assert.doesNotMatch(JSON.stringify(messages), /thinking/);
  });

  test('S9: what a vendor signed goes back byte for byte', () => {
    const thinking = 'line\n "quoted" \u00e9 \\ 1.0';
    const content = [
      { type: 'thinking', thinking, signature: sealedFor('messages', 'S+/=') },
      { type: 'text', text: 'x' },
    ];
    const out = convert('messages', 'messages', { max_tokens: 10, messages: [hi, { role: 'assistant', content }, hi] });
    assert.deepEqual(out.messages[1].content[0], { type: 'thinking', thinking, signature: 'S+/=' });
  });

  test('S10: the envelope holds the model that made the value', () => {
    const { body } = through('messages', 'messages', [
      messageStart(),
      ...block(0, { type: 'thinking', thinking: '', signature: '' }, { type: 'signature_delta', signature: 'SIG' }),
      ...block(1, { type: 'text', text: '' }, say('x')),
      ...messageEnd('end_turn'),
    ]);
    const inside = JSON.parse(Buffer.from(body.content[0].signature.slice(4), 'base64url').toString());
    assert.deepEqual([inside.owner.model, inside.value], ['up-model', 'SIG']);
  });

  test('S11: redacted thinking has a responses form, and raw text is not doubled', () => {
    const { body } = through('messages', 'responses', [
      messageStart(),
      ...block(0, { type: 'redacted_thinking', data: 'DATA' }),
      ...block(1, { type: 'text', text: '' }, say('x')),
      ...messageEnd('end_turn'),
    ]);
    assert.equal(body.output[0].type, 'reasoning');
    assert.match(body.output[0].encrypted_content, /^mz2\./);
    const both = [
      { type: 'reasoning', id: 'rs_1', summary: [], content: [{ type: 'reasoning_text', text: 'hm' }] },
      assistant,
      hi,
    ];
    const chat = convert('responses', 'chat', { input: [hi, ...both] }, { options: { replayReasoningContent: true } });
    assert.equal(JSON.stringify(chat).split('hm').length, 2);
  });

  test('S12: the signature comes as signature_delta, once, behind the thinking', () => {
    const { events } = through('messages', 'messages', [
      messageStart(),
      ...block(
        0,
        { type: 'thinking', thinking: '', signature: '' },
        { type: 'thinking_delta', thinking: 'hm' },
        { type: 'signature_delta', signature: 'SIG' },
      ),
      ...block(1, { type: 'text', text: '' }, say('x')),
      ...messageEnd('end_turn'),
    ]);
    assert.deepEqual(
      events.flatMap(({ delta: piece }) => (piece?.type === undefined ? [] : [piece.type])),
      ['thinking_delta', 'signature_delta', 'text_delta'],
    );
  });
});

describe('tool identity', () => {
  const CUSTOM = { type: 'custom', name: 'apply_patch', format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' } };

  test('T2: a freeform tool that was lowered comes back as custom_tool_call with bare text', () => {
    const request = {
      dialect: 'responses' as const,
      tools: [{ kind: 'custom' as const, tool: { name: 'apply_patch' }, at: 'tools[0]' }],
    };
    const { body } = through(
      'gemini',
      'responses',
      [geminiChunk([{ functionCall: { name: 'apply_patch', args: { input: '*** patch' } } }], 'STOP')],
      { request },
    );
    assert.deepEqual([body.output[0].type, body.output[0].input], ['custom_tool_call', '*** patch']);
    assert.throws(
      () => sent('responses', 'messages', { input: 'x', tools: [CUSTOM] }),
      gatewayError({ status: 400, code: 'unsupported_conversion' }),
    );
    assert.equal(convert('responses', 'chat', { input: 'x', tools: [CUSTOM] }).tools[0].type, 'custom');
  });

  test('T2: a chat upstream that has functions only takes a freeform tool as one string and streams its text back live', () => {
    const options = { lowerCustomTools: true };
    const call = { type: 'custom_tool_call', call_id: 'a', name: 'apply_patch', input: '*** "old"\n' };
    const body = convert(
      'responses',
      'chat',
      {
        input: [hi, call, { type: 'custom_tool_call_output', call_id: 'a', output: 'done' }],
        tools: [CUSTOM],
        tool_choice: { type: 'custom', name: 'apply_patch' },
      },
      { options },
    );
    const [tool] = body.tools;
    assert.deepEqual([tool.type, tool.function.name, tool.function.parameters.required], ['function', 'apply_patch', ['input']]);
    assert.deepEqual(body.tool_choice, { type: 'function', function: { name: 'apply_patch' } });
    assert.deepEqual(body.messages[1].tool_calls[0].function, {
      name: 'apply_patch',
      arguments: JSON.stringify({ input: call.input }),
    });
    assert.deepEqual(body.messages[2], { role: 'tool', tool_call_id: 'a', content: 'done' });

    const request = {
      dialect: 'responses' as const,
      tools: [{ kind: 'custom' as const, tool: { name: 'apply_patch' }, at: 'tools[0]' }],
    };
    const heard = (...pieces: string[]) =>
      through(
        'chat',
        'responses',
        [...pieces.map((piece, at) => callDelta(0, at === 0 ? 'a' : undefined, at === 0 ? 'apply_patch' : undefined, piece))],
        { request },
      );
    const live = heard('{"inp', 'ut": "*** Be', 'gin\\', 'nline \\ud83d', '\\ude00 end').events;
    assert.deepEqual(
      live.flatMap(({ type, delta }) => (type === 'response.custom_tool_call_input.delta' ? [delta] : [])),
      ['*** Be', 'gin', '\nline ', '😀 end'],
    );
    for (const [args, input] of [
      ['{"input":"text"}', 'text'],
      ['{"patch":"text"}', 'text'],
      ['*** bare text', '*** bare text'],
    ] as const) {
      const events = [callDelta(0, 'a', 'apply_patch', args), finish('tool_calls'), DONE];
      const { body: answer } = through('chat', 'responses', events, { request });
      const [item] = answer.output;
      assert.deepEqual([item.type, item.input, item.status], ['custom_tool_call', input, 'completed']);
    }
    const { body: cut } = through(
      'chat',
      'responses',
      [callDelta(0, 'a', 'apply_patch', '{"input":"half'), finish('length'), DONE],
      { request },
    );
    assert.deepEqual([cut.status, cut.output[0].status, cut.output[0].input], ['incomplete', 'incomplete', 'half']);
  });

  test('T6: arguments that parse early are not final: more may come', () => {
    const { body, events } = through('chat', 'messages', [
      callDelta(0, 'a', 'f', '{"a":1}'),
      callDelta(0, undefined, undefined, ' '),
      finish('tool_calls'),
      DONE,
    ]);
    assert.deepEqual(body.content[0].input, { a: 1 });
    const said = events.map(({ delta: piece }) => piece?.partial_json ?? '').join('');
    assert.equal(said, '{"a":1} ');
    const cut = through('chat', 'messages', [
      callDelta(0, 'a', 'f', '{"a":1}'),
      callDelta(0, undefined, undefined, '{"b"'),
      finish('tool_calls'),
      DONE,
    ]);
    assert.equal(cut.names.at(-1), 'error');
  });

  test('T9: a call that has a result is never dropped, two items of one id included', () => {
    const call = (call_id: string): object => ({ id: 'fc_same', type: 'function_call', call_id, name: 'f', arguments: '{}' });
    const output = (call_id: string): object => ({ type: 'function_call_output', call_id, output: 'r' });
    for (const upstream of ['chat', 'messages'] as const) {
      const text = JSON.stringify(
        convert('responses', upstream, { input: [hi, call('a'), call('b'), output('a'), output('b')] }),
      );
      for (const id of ['a', 'b']) assert.equal(text.split(`"id":"${id}"`).length, 2, `${upstream}: ${text}`);
    }
  });
});
