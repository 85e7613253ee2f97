import assert from 'node:assert/strict';
import test from 'node:test';
import type { CanonicalEvent } from '../../../../src/codecs/canonical/event.ts';
import type { OutputItem } from '../../../../src/codecs/canonical/item.ts';
import type { Outcome } from '../../../../src/codecs/canonical/outcome.ts';
import type { Tool } from '../../../../src/codecs/canonical/request.ts';
import { GenerateContentDecoder } from '../../../../src/codecs/gemini/index.ts';
import { NAME_RULE } from '../../../../src/codecs/gemini/request/encode-tools.ts';
import { nameTools } from '../../../../src/codecs/tools/names.ts';
import {
  chunkOf,
  contextOf,
  decodeStream,
  decodeWhole,
  foldStream,
  foldWhole,
  frameOf,
  gatewayError,
  OWNER,
  requestOf,
} from '../support.ts';

const STOP = chunkOf([{ text: '' }], 'STOP');

function items(chunks: readonly unknown[], context: Parameters<typeof foldStream>[1] = {}): OutputItem[] {
  return foldStream(chunks, context).items.map(({ item }) => item);
}

function outcome(chunks: readonly unknown[]): Outcome {
  const end = decodeStream(chunks).at(-1);
  assert.ok(end?.type === 'response.end');
  return end.outcome;
}

const sealed = (value: string, form: string, itemId?: string): object => ({
  owner: OWNER,
  value,
  form,
  ...(itemId === undefined ? {} : { itemId }),
});

test('text and thoughts stream as they come, thoughts as the readable summary', () => {
  const events = decodeStream([
    { ...(chunkOf([{ text: 'hm', thought: true }]) as object), responseId: 'r1', modelVersion: 'm1' },
    chunkOf([{ text: 'Hel' }]),
    chunkOf([{ text: 'lo' }], 'STOP'),
  ]);
  assert.deepEqual(events, [
    { type: 'response.start', id: 'r1', model: 'm1' },
    { type: 'item.start', index: 0, head: { kind: 'reasoning' } },
    { type: 'item.delta', index: 0, delta: { kind: 'summary', part: 0, text: 'hm' } },
    { type: 'item.end', index: 0, item: { kind: 'reasoning', summary: ['hm'] }, status: 'completed' },
    { type: 'item.start', index: 1, head: { kind: 'text', role: 'assistant' } },
    { type: 'item.delta', index: 1, delta: { kind: 'text', text: 'Hel' } },
    { type: 'item.delta', index: 1, delta: { kind: 'text', text: 'lo' } },
    { type: 'item.end', index: 1, item: { kind: 'text', role: 'assistant', text: 'Hello', citations: [] }, status: 'completed' },
    { type: 'response.end', outcome: { status: 'completed', stop: 'end', native: 'STOP' } },
  ] satisfies CanonicalEvent[]);
});

test('a signature belongs to its part: on text, on an empty part behind it, on a thought, on a call', () => {
  assert.deepEqual(items([chunkOf([{ text: 'a', thoughtSignature: 'S' }]), STOP]), [
    { kind: 'text', role: 'assistant', text: 'a', citations: [], opaque: sealed('S', 'text') },
  ]);
  assert.deepEqual(items([chunkOf([{ text: 'ab' }]), chunkOf([{ text: '', thoughtSignature: 'S' }], 'STOP')]), [
    { kind: 'text', role: 'assistant', text: 'ab', citations: [], opaque: sealed('S', 'text:2:2') },
  ]);
  assert.deepEqual(
    items([chunkOf([{ text: 'a' }]), chunkOf([{ text: 'b', thoughtSignature: 'S' }]), chunkOf([{ text: 'c' }], 'STOP')]),
    [{ kind: 'text', role: 'assistant', text: 'abc', citations: [], opaque: sealed('S', 'text:1:2') }],
  );
  assert.deepEqual(items([chunkOf([{ text: 't', thought: true, thoughtSignature: 'S' }]), STOP]), [
    { kind: 'reasoning', summary: ['t'], opaque: sealed('S', 'thought') },
  ]);
  assert.deepEqual(items([chunkOf([{ text: 't', thought: true }]), chunkOf([{ text: '', thoughtSignature: 'S' }], 'STOP')]), [
    { kind: 'reasoning', summary: ['t'], opaque: sealed('S', 'thought+empty') },
  ]);
});

test('two signed texts stay two items, and a signature with nothing before it stays in its place', () => {
  assert.deepEqual(
    items([
      chunkOf(
        [
          { text: 'a', thoughtSignature: 'A' },
          { text: 'b', thoughtSignature: 'B' },
        ],
        'STOP',
      ),
    ]),
    [
      { kind: 'text', role: 'assistant', text: 'a', citations: [], opaque: sealed('A', 'text') },
      { kind: 'text', role: 'assistant', text: 'b', citations: [], opaque: sealed('B', 'text') },
    ],
  );
  assert.deepEqual(items([chunkOf([{ text: '', thoughtSignature: 'E' }, { text: 'a' }], 'STOP')]), [
    { kind: 'reasoning', opaque: sealed('E', 'empty') },
    { kind: 'text', role: 'assistant', text: 'a', citations: [] },
  ]);
});

test('G2: a signature may come in a later chunk than its call, and only the first of parallel calls is signed', () => {
  const calls = items([
    chunkOf([{ functionCall: { name: 'f', args: {} } }]),
    chunkOf([{ thought_signature: 'S' }]),
    chunkOf([{ functionCall: { name: 'f', args: {} } }]),
    STOP,
  ]);
  const id = `call_${'1'.padStart(32, '0')}`;
  assert.deepEqual(calls[0], {
    kind: 'toolCall',
    toolType: 'function',
    callId: id,
    tool: { name: 'f' },
    input: '{}',
    opaque: sealed('S', 'functionCall', id),
  });
  assert.equal('opaque' in (calls[1] ?? {}), false);
});

test('G7: calls without ids, or with the same id twice, get ids of their own', () => {
  const call = (id?: string): object => ({ functionCall: { ...(id === undefined ? {} : { id }), name: 'f', args: { n: 1 } } });
  const ids = items([chunkOf([call(), call(), call('x'), call('x')], 'STOP')]).map((item) =>
    item.kind === 'toolCall' ? item.callId : '',
  );
  assert.equal(new Set(ids).size, 4);
  assert.equal(ids[2], 'x');
});

test('T10 T7: arguments keep the order, the numbers and the keys that were sent', () => {
  const args = '{ "b" : 1.0, "2": 1e3, "1": {"__proto__": "x  y"} }';
  const body = `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":${args}}}]},"finishReason":"STOP"}]}`;
  const [item] = foldWhole(body).items;
  assert.equal(item?.item.kind === 'toolCall' && item.item.input, '{"b":1.0,"2":1e3,"1":{"__proto__":"x  y"}}');
});

test('arguments that are missing, null or a JSON text are the object that they mean', () => {
  const input = (call: object): unknown => {
    const [item] = items([chunkOf([{ functionCall: { name: 'f', ...call } }], 'STOP')]);
    return item?.kind === 'toolCall' ? item.input : undefined;
  };
  assert.equal(input({}), '{}');
  assert.equal(input({ args: null }), '{}');
  assert.equal(input({ args: '{"a":1}' }), '{"a":1}');
  for (const args of [3, '{"a":', [1]]) {
    assert.throws(() => input({ args }), gatewayError('upstream_error', { reason: 'malformed_event' }));
  }
});

test('T1: names are restored, and a lowered freeform tool gets its bare text back', () => {
  const tools: Tool[] = [
    { kind: 'function', tool: { name: 'a/b', namespace: 'ns' }, at: 'tools[0]' },
    { kind: 'custom', tool: { name: 'patch' }, at: 'tools[1]' },
    { kind: 'custom', tool: { name: 'shaped' }, inputSchema: { type: 'object' }, at: 'tools[2]' },
  ];
  const request = requestOf({ tools });
  const names = tools.flatMap((tool) => (tool.kind === 'native' ? [] : [tool.tool]));
  const context = { request, toolNames: nameTools(names, NAME_RULE) };
  const called = items(
    [
      chunkOf([
        { functionCall: { name: 'a_b', args: {} } },
        { functionCall: { name: 'patch', args: { input: '*** Begin' } } },
        { functionCall: { name: 'shaped', args: { k: 1 } } },
      ]),
      STOP,
    ],
    context,
  ).map((item) => (item.kind === 'toolCall' ? [item.toolType, item.tool, item.input] : []));
  assert.deepEqual(called, [
    ['function', { name: 'a/b', namespace: 'ns' }, '{}'],
    ['custom', { name: 'patch' }, '*** Begin'],
    ['custom', { name: 'shaped' }, '{"k":1}'],
  ]);
});

test('arguments that arrive by path are built whole, and refused when they are not', () => {
  const piece = (partialArgs: readonly object[], more: object = { willContinue: true }): unknown =>
    chunkOf([{ functionCall: { partialArgs, ...more } }]);
  const start = chunkOf([{ functionCall: { name: 'f', willContinue: true }, thoughtSignature: 'S' }]);
  const [item] = items([
    start,
    piece([{ jsonPath: '$.list[0].text', stringValue: 'one ', willContinue: true }]),
    piece([{ jsonPath: '$.list[0].text', stringValue: 'two' }]),
    piece([
      { jsonPath: '$.list[1]', numberValue: 0.5 },
      { jsonPath: "$['a.b']", boolValue: true },
    ]),
    piece([{ jsonPath: '$.__proto__.x', nullValue: 'NULL_VALUE' }], {}),
    STOP,
  ]);
  assert.ok(item?.kind === 'toolCall');
  assert.equal(item.input, '{"list":[{"text":"one two"},0.5],"a.b":true,"__proto__":{"x":null}}');
  assert.equal(item.opaque?.value, 'S');

  const malformed = gatewayError('upstream_error', { reason: 'malformed_event' });
  for (const jsonPath of ['list', '$.', '$.a[5]', '$', '$.a[', `$${'.a'.repeat(50_000)}`, `$["${'a'.repeat(20_000_000)}"]`]) {
    assert.throws(() => decodeStream([start, piece([{ jsonPath, stringValue: 'x' }]), STOP]), malformed, jsonPath.slice(0, 20));
  }
  const illegal = gatewayError('upstream_error', { reason: 'illegal_lifecycle' });
  assert.throws(() => decodeStream([start, chunkOf([{ text: 'x' }]), STOP]), illegal);
  assert.throws(() => decodeStream([start, chunkOf([], 'STOP')]), illegal);
  const cut = foldStream([start, piece([{ jsonPath: '$.a', stringValue: 'b', willContinue: true }]), chunkOf([], 'MAX_TOKENS')]);
  assert.equal(cut.items[0]?.status, 'incomplete');
  assert.throws(() => JSON.parse(cut.items[0]?.item.kind === 'toolCall' ? cut.items[0].item.input : '{}'));
});

test('a part that says a text beside its call or its media loses neither; members that are null say nothing', () => {
  const call = { functionCall: { name: 'f', args: {} }, thoughtSignature: 'S' };
  const image = { inlineData: { mimeType: 'image/png', data: 'AAAA' } };
  const kinds = (part: object) => items([chunkOf([part], 'STOP')]).map((item) => item.kind);
  assert.deepEqual(kinds({ text: '', ...call }), ['toolCall']);
  assert.deepEqual(kinds({ text: 'a', ...call }), ['text', 'toolCall']);
  assert.deepEqual(kinds({ text: '', ...image }), ['media']);
  assert.deepEqual(kinds({ text: null, inlineData: null, fileData: null, ...call }), ['toolCall']);
  const [only, ...more] = items([chunkOf([{ text: 'a', functionCall: null, inlineData: null, thoughtSignature: 'S' }], 'STOP')]);
  assert.equal(only?.kind === 'text' && only.opaque?.value, 'S');
  assert.deepEqual(more, []);
  assert.deepEqual(kinds({ text: null, functionCall: null, inlineData: null, thoughtSignature: 'S' }), ['reasoning']);
  const [, signed] = items([chunkOf([{ text: 'a', ...call }], 'STOP')]);
  assert.equal(signed?.kind === 'toolCall' && signed.opaque?.value, 'S');
});

test('media, executed code and server-side tools keep their order and their place', () => {
  const parts = [
    { text: 'a' },
    { executableCode: { language: 'PYTHON', code: 'x' }, thoughtSignature: 'N' },
    {},
    { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1' } },
    { inlineData: { mimeType: 'image/png', data: 'AAAA' }, thoughtSignature: 'S' },
    { inlineData: { mimeType: 'audio/L16;rate=24000', data: 'AAAA' } },
    { text: 'b' },
  ];
  const said = items([chunkOf(parts, 'STOP')]);
  assert.deepEqual(
    said.map((item) => item.kind),
    ['text', 'native', 'native', 'media', 'media', 'text'],
  );
  assert.deepEqual(said[3], {
    kind: 'media',
    role: 'assistant',
    media: { type: 'image', source: { from: 'inline', mime: 'image/png', data: 'AAAA' } },
    opaque: sealed('S', 'inlineData'),
  });
});

test('the type of media is the same in all letters, and one that is empty is read from the bytes', () => {
  const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  for (const [given, type, mime] of [
    ['IMAGE/PNG', 'image', 'image/png'],
    [' Image/Webp ', 'image', 'image/webp'],
    ['image/png; name=a', 'image', 'image/png;name=a'],
    ['', 'image', 'image/png'],
    ['AUDIO/WAV', 'audio', 'audio/wav'],
    ['audio/L16;codec=pcm;rate=24000', 'audio', 'audio/L16;codec=pcm;rate=24000'],
    ['Video/MP4', 'file', 'video/mp4'],
  ] as const) {
    const [item] = items([chunkOf([{ inlineData: { mimeType: given, data: PNG } }], 'STOP')]);
    assert.deepEqual(item?.kind === 'media' && [item.media.type, (item.media.source as { mime?: string }).mime], [type, mime]);
  }
  const [linked] = items([chunkOf([{ fileData: { mimeType: 'IMAGE/PNG', fileUri: 'https://a.example/x' } }], 'STOP')]);
  assert.equal(linked?.kind === 'media' && linked.media.type, 'image');
});

test('G16: finish reasons by group; an unknown one is no success', () => {
  const ending = (reason: string, message?: string): string => {
    const end = outcome([chunkOf([{ text: 'a' }], reason, message === undefined ? {} : { finishMessage: message })]);
    if (end.status === 'completed') return `completed ${end.stop}`;
    return end.status === 'incomplete' ? `incomplete ${end.reason}` : `${end.status} ${end.error.code} ${end.error.message}`;
  };
  assert.equal(ending('STOP'), 'completed end');
  assert.equal(ending('MAX_TOKENS'), 'incomplete max_output');
  for (const word of 'SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY MODEL_ARMOR'.split(' ')) {
    assert.equal(ending(word), 'incomplete content_filter');
  }
  for (const word of 'MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS OTHER NO_IMAGE'.split(' ')) {
    assert.match(ending(word), /^failed upstream_error The model stopped with/);
  }
  assert.equal(ending('OTHER', 'Ask https://x.example/y'), 'failed upstream_error Ask [url]');
  assert.equal(ending('SOMETHING_NEW'), 'incomplete other');
  assert.deepEqual(outcome([chunkOf([{ functionCall: { name: 'f' } }], 'STOP')]), {
    status: 'completed',
    stop: 'toolUse',
    native: 'STOP',
  });
  assert.deepEqual(foldStream([{ candidates: [{ finishReason: 'STOP' }] }]).items, []);
});

test('a repeated finish reason is taken as it comes last, but no STOP undoes another, and text after it still counts', () => {
  const whole = foldStream([chunkOf([{ text: 'a' }], 'STOP'), chunkOf([{ text: 'b' }], 'STOP'), chunkOf([], 'RECITATION')]);
  assert.deepEqual(whole.outcome, { status: 'incomplete', reason: 'content_filter', native: 'RECITATION' });
  assert.equal(whole.items[0]?.item.kind === 'text' && whole.items[0].item.text, 'ab');
  assert.equal(whole.items[0]?.status, 'incomplete');
  const ending = (...reasons: string[]) => outcome(reasons.map((reason) => chunkOf([{ text: 'a' }], reason)));
  assert.deepEqual(ending('MAX_TOKENS', 'STOP'), { status: 'incomplete', reason: 'max_output', native: 'MAX_TOKENS' });
  assert.deepEqual(ending('STOP', 'SAFETY', 'STOP'), { status: 'incomplete', reason: 'content_filter', native: 'SAFETY' });
  assert.equal(ending('OTHER', 'STOP').status, 'failed');
});

test('a blocked prompt is a failure that keeps what was said', () => {
  const events = decodeStream([
    chunkOf([{ text: 'a' }]),
    { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' }, usageMetadata: { promptTokenCount: 3 } },
    chunkOf([{ text: 'never' }], 'STOP'),
  ]);
  const end = events.at(-1);
  assert.ok(end?.type === 'response.end' && end.outcome.status === 'failed');
  assert.equal(end.outcome.error.shownCode, 'content_filter');
  assert.match(end.outcome.error.message, /PROHIBITED_CONTENT/);
  assert.ok(events.some((event) => event.type === 'usage.report' && event.usage.input === 3));
  assert.ok(!JSON.stringify(events).includes('never'));
});

test('an error object in the stream is a failure, before and after text', () => {
  const error = { error: { code: 503, status: 'UNAVAILABLE', message: 'secret host 10.0.0.1' } };
  for (const before of [[], [chunkOf([{ text: 'a' }])], [chunkOf([{ text: 'a' }], 'STOP')]]) {
    const end = outcome([...before, error]);
    assert.ok(end.status === 'failed');
    assert.equal(end.error.details.upstream?.status, 503);
    assert.doesNotMatch(end.error.message, /10\.0/);
  }
});

test('an ending without a finish reason is an error, and known members of a wrong type are', () => {
  const truncated = gatewayError('upstream_error', { reason: 'truncated' });
  assert.throws(() => decodeStream([]), truncated);
  assert.throws(() => decodeStream([chunkOf([{ text: 'a' }])]), truncated);
  assert.throws(() => decodeStream([chunkOf([{ text: 'a' }]), '[DONE]']), truncated);
  assert.throws(() => decodeStream([chunkOf([{ text: 'a' }], 'FINISH_REASON_UNSPECIFIED')]), truncated);
  const malformed = gatewayError('upstream_error', { reason: 'malformed_event' });
  const bad: unknown[] = [
    '{"candidates":[',
    '[]',
    'null',
    { candidates: {} },
    { candidates: [3] },
    { candidates: [{ content: 'x' }] },
    { candidates: [{ content: { parts: {} } }] },
    { candidates: [{ content: { parts: [null] } }] },
    chunkOf([{ text: 5 }]),
    chunkOf([{ functionCall: [] }]),
    chunkOf([{ functionCall: { args: {} } }]),
    chunkOf([{ functionCall: { name: 3 } }]),
    chunkOf([{ text: 'a', thoughtSignature: 7 }]),
    chunkOf([{ inlineData: { mimeType: 'image/png' } }]),
    { candidates: [{ finishReason: 1 }] },
    { usageMetadata: [] },
  ];
  for (const chunk of bad) assert.throws(() => decodeStream([chunk, STOP]), malformed, JSON.stringify(chunk));
  // It says which member that is.
  for (const [member, list, entry] of [
    ['citationMetadata', 'citationSources', 5],
    ['groundingMetadata', 'groundingSupports', 5],
  ] as const)
    assert.throws(
      () => decodeStream([chunkOf([{ text: 'a' }], 'STOP', { [member]: { [list]: [entry] } })]),
      (error: unknown) => malformed(error) && /malformed (citationMetadata|groundingSupports)\./.test(String(error)),
      list,
    );
});

test('the candidate with index 0 is returned, else the first, and candidates are never merged', () => {
  const candidate = (index: number | undefined, text: string, finishReason?: string): object => ({
    ...(index === undefined ? {} : { index }),
    content: { parts: [{ text }] },
    ...(finishReason === undefined ? {} : { finishReason }),
  });
  const said = (chunks: readonly unknown[]): string =>
    items(chunks)
      .map((item) => (item.kind === 'text' ? item.text : ''))
      .join('|');
  assert.equal(said([{ candidates: [candidate(1, 'x', 'STOP'), candidate(0, 'a', 'STOP')] }]), 'a');
  assert.equal(said([{ candidates: [candidate(2, 'x'), candidate(1, 'y')] }, { candidates: [candidate(2, 'z', 'STOP')] }]), 'xz');
  assert.equal(said([{ candidates: [candidate(undefined, 'a')] }, { candidates: [candidate(1, 'x', 'STOP')] }, STOP]), 'a');

  // Another candidate that comes first waits until it is known to be the only one.
  const other = { candidates: [candidate(1, 'x', 'STOP')] };
  assert.equal(said([other, { candidates: [candidate(0, 'a')] }, { candidates: [candidate(1, 'y')] }, STOP]), 'a');
  assert.equal(said([other, { candidates: [candidate(2, 'y')] }, { candidates: [candidate(1, 'z')] }]), 'xz');
  const truncated = gatewayError('upstream_error', { reason: 'truncated' });
  assert.throws(() => decodeStream([other, { candidates: [candidate(0, 'a')] }]), truncated);
  assert.throws(() => decodeStream([{ candidates: [candidate(1, 'x')] }]), truncated);
  const counted = foldStream([
    { ...other, usageMetadata: { promptTokenCount: 3 } },
    { usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 4 } },
  ]);
  assert.deepEqual(counted.usage, { input: 3, output: 4 });
});

test('a counter that is no whole number up to a billion counts as missing, and the answer stands', () => {
  const usageOf = (usageMetadata: object) =>
    decodeStream([{ ...(chunkOf([{ text: 'a' }], 'STOP') as object), usageMetadata }]).findLast(
      (event) => event.type === 'usage.report',
    )?.usage;
  for (const wrong of [-1, 1.5, 1e9 + 1, Number.MAX_SAFE_INTEGER, 1e300, 'x', '', true, {}, []]) {
    assert.deepEqual(usageOf({ promptTokenCount: 3, candidatesTokenCount: wrong }), { input: 3 });
    assert.deepEqual(usageOf({ promptTokenCount: wrong, candidatesTokenCount: 4 }), { output: 4 });
  }
  assert.deepEqual(usageOf({ promptTokenCount: '3', candidatesTokenCount: 1e9, thoughtsTokenCount: 1e9 }), {
    ...{ input: 3, output: 2e9, reasoning: 1e9 },
  });
});

test('U8 G17: usage is the last report, placeholders are none, tool prompts and thoughts are counted', () => {
  const reports = decodeStream([
    { ...(chunkOf([{ text: 'a' }]) as object), usageMetadata: { promptTokenCount: 0, totalTokenCount: 0 } },
    { ...(chunkOf([{ text: 'b' }]) as object), usageMetadata: { promptTokenCount: 10, totalTokenCount: 10 } },
    {
      ...(chunkOf([], 'STOP') as object),
      usageMetadata: {
        promptTokenCount: 10,
        candidatesTokenCount: 5,
        thoughtsTokenCount: 7,
        toolUsePromptTokenCount: 3,
        cachedContentTokenCount: 4,
        totalTokenCount: 25,
        candidatesTokensDetails: [
          { modality: 'TEXT', tokenCount: 3 },
          { modality: 'IMAGE', tokenCount: 2 },
        ],
      },
    },
    { usageMetadata: { promptTokenCount: 0, candidatesTokenCount: 0, totalTokenCount: 0 } },
  ]).flatMap((event) => (event.type === 'usage.report' ? [event.usage] : []));
  assert.deepEqual(reports, [{ input: 10 }, { input: 9, cacheRead: 4, output: 12, reasoning: 7, imageOutput: 2 }]);
});

test('G15: logprobs stay with their text, computed bytes included, and go when they do not fit', () => {
  const result = {
    chosenCandidates: [{ token: 'H', logProbability: -0.5 }, { token: 'é' }],
    topCandidates: [{ candidates: [{ token: 'X', logProbability: -0.1 }] }, { candidates: [] }],
  };
  const request = requestOf({ logprobs: { top: 1 } });
  const expected = [
    { token: 'H', logprob: -0.5, bytes: [72], top: [{ token: 'X', logprob: -0.1, bytes: [88] }] },
    { token: 'é', logprob: 0, bytes: [195, 169], top: [] },
  ];
  const logprobs = (chunks: readonly unknown[]): unknown => {
    const [item] = items(chunks, { request });
    return item?.kind === 'text' ? item.logprobs : undefined;
  };
  assert.deepEqual(logprobs([chunkOf([{ text: 'Hé' }], 'STOP', { logprobsResult: result })]), expected);
  assert.deepEqual(logprobs([chunkOf([{ text: 'H' }]), chunkOf([{ text: 'é' }], 'STOP', { logprobsResult: result })]), expected);
  assert.equal(logprobs([chunkOf([{ text: 'Ho' }], 'STOP', { logprobsResult: result })]), undefined);
  assert.deepEqual(items([chunkOf([{ text: 'Hé' }], 'STOP', { logprobsResult: result })]), [
    { kind: 'text', role: 'assistant', text: 'Hé', citations: [] },
  ]);

  const parts = [{ text: 'H' }, { functionCall: { name: 'f' } }, { text: 'é' }];
  const deltas = decodeStream([chunkOf(parts, 'STOP', { logprobsResult: result })], { request }).flatMap((event) =>
    event.type === 'item.delta' && event.delta.kind === 'text' ? [event.delta] : [],
  );
  assert.deepEqual(deltas, [
    { kind: 'text', text: 'H', logprobs: expected.slice(0, 1) },
    { kind: 'text', text: 'é', logprobs: expected.slice(1) },
  ]);
});

test('logprobs that come with the last chunk go to the texts of the answer, though a thought or a call parts them', () => {
  const request = requestOf({ logprobs: { top: 0 } });
  const tokensOf = (parts: readonly object[], ...tokens: string[]): unknown => {
    const late = { logprobsResult: { chosenCandidates: tokens.map((token) => ({ token, logProbability: -1 })) } };
    const chunks = [...parts.map((part) => chunkOf([part])), chunkOf([{ text: '' }], 'STOP', late)];
    return items(chunks, { request }).flatMap((item) =>
      item.kind === 'text' ? [item.logprobs?.map(({ token }) => token).join('|')] : [],
    );
  };
  const call = { functionCall: { name: 'f' } };
  assert.deepEqual(tokensOf([{ text: 'ab' }, call], 'a', 'b'), ['a|b']);
  assert.deepEqual(tokensOf([{ text: 'ab' }, { text: 'T', thought: true }, { text: 'c' }, call], 'a', 'b', 'c'), ['a|b', 'c']);
  assert.deepEqual(tokensOf([{ text: 'ab' }, call, { text: 'c' }], 'a', 'b', 'x'), [undefined, undefined]);
});

test('supports that name more sources than any search cites are refused', () => {
  const answer = (supports: number) => ({
    candidates: [
      {
        content: { parts: [{ text: 'said' }] },
        finishReason: 'STOP',
        groundingMetadata: {
          groundingChunks: [{ web: { uri: 'https://a.example' } }],
          groundingSupports: Array.from({ length: supports }, () => ({
            segment: { endIndex: 4 },
            groundingChunkIndices: Array<number>(1000).fill(0),
          })),
        },
      },
    ],
  });
  assert.equal(foldWhole(answer(250)).items.length, 1);
  assert.throws(() => decodeWhole(answer(251)), /name more than 250000 sources/);
});

test('grounding counts bytes inside its part; citations count bytes of the whole visible text', () => {
  const groundingMetadata = {
    groundingChunks: [{ web: { uri: 'https://a.example', title: 'A' } }, { retrievedContext: { title: 'no address' } }],
    groundingSupports: [
      { segment: { startIndex: 7, endIndex: 13, text: 'übér', partIndex: 1 }, groundingChunkIndices: [0, 1, 9] },
      { segment: { startIndex: 3, endIndex: 6 }, groundingChunkIndices: [0] },
      { segment: { startIndex: 3, endIndex: 6, text: 'other' }, groundingChunkIndices: [0] },
      { segment: { startIndex: 1, endIndex: 6 }, groundingChunkIndices: [0] },
    ],
  };
  const citationMetadata = {
    citationSources: [
      { endIndex: 3, uri: 'https://b.example' },
      { endIndex: 2, license: 'mit' },
    ],
  };
  const parts = [{ text: 'hm', thought: true }, { text: '€uro übér' }];
  const [, item] = items([chunkOf(parts, 'STOP', { groundingMetadata, citationMetadata })]);
  assert.deepEqual(item?.kind === 'text' && item.citations, [
    { kind: 'url', url: 'https://a.example', title: 'A', start: 5, end: 9 },
    { kind: 'url', url: 'https://a.example', title: 'A', start: 1, end: 4 },
    { kind: 'url', url: 'https://a.example', title: 'A' },
    { kind: 'url', url: 'https://b.example', start: 0, end: 1 },
    { kind: 'native', dialect: 'gemini', body: { endIndex: 2, license: 'mit' } },
  ]);
});

test('many sources are cited at one place; links of more than 8 MiB together, as they are cited, are refused', () => {
  const text = 'said '.repeat(10);
  const answered = (uri: string, cited: number) => {
    const groundingChunks = [0, 1, 2].map((at) => ({ web: { uri: `${uri}${at}` } }));
    const place = (at: number) => ({ segment: { startIndex: at * 5, endIndex: at * 5 + 4, text: 'said' } });
    const groundingSupports = Array.from({ length: cited }, (_, at) => ({ ...place(at), groundingChunkIndices: [0, 1, 2, 2] }));
    return [chunkOf([{ text }], 'STOP', { groundingMetadata: { groundingChunks, groundingSupports } })];
  };
  const [item] = items(answered('https://a.example/', 2));
  assert.deepEqual(
    item?.kind === 'text' &&
      item.citations.map((citation) => [citation.kind === 'url' && citation.url.at(-1), Object.values(citation).slice(-2)]),
    [0, 1].flatMap((at) => [0, 1, 2].map((source) => [`${source}`, [at * 5, at * 5 + 4]])),
  );
  const long = `https://a.example/${'u'.repeat(400_000)}`;
  assert.doesNotThrow(() => items(answered(long, 6)));
  assert.throws(() => items(answered(long, 7)), gatewayError('upstream_error', { reason: 'malformed_event' }));
});

test('what is spoken, drawn or run is a part, too, of which grounding counts them', () => {
  const between = [
    { inlineData: { mimeType: 'audio/L16;rate=24000', data: 'AAAA' } },
    { inlineData: { mimeType: 'image/png', data: 'AAAA' } },
    { executableCode: { code: 'x' } },
  ];
  const words = ['abc', 'def', 'ghi'];
  const parts = between.flatMap((part, at) => [part, { text: words[at] }]);
  const groundingMetadata = {
    groundingChunks: between.map((_, at) => ({ web: { uri: `https://${at}.example` } })),
    groundingSupports: between.map((_, at) => ({
      segment: { startIndex: 0, endIndex: 2, text: words[at]?.slice(0, 2), partIndex: 2 * at + 1 },
      groundingChunkIndices: [at],
    })),
  };
  const texts = items([chunkOf(parts, 'STOP', { groundingMetadata })]).flatMap((item) => (item.kind === 'text' ? [item] : []));
  assert.deepEqual(
    texts.map(({ citations }) => citations),
    between.map((_, at) => [{ kind: 'url', url: `https://${at}.example`, start: 0, end: 2 }]),
  );
});

test('a citation of an earlier text comes with that text when it is known in time', () => {
  const parts = [{ text: 'aaa' }, { executableCode: { code: 'x' } }, { text: 'bbb' }];
  const citationMetadata = {
    citations: [
      { startIndex: 1, endIndex: 3, uri: 'https://1.example' },
      { startIndex: 3, endIndex: 5, uri: 'https://2.example', title: 'T' },
      { startIndex: 2, endIndex: 4, uri: 'https://3.example' },
    ],
  };
  const [first, , last] = items([chunkOf(parts, 'STOP', { citationMetadata })]);
  assert.deepEqual(first?.kind === 'text' && first.citations, [{ kind: 'url', url: 'https://1.example', start: 1, end: 3 }]);
  assert.deepEqual(last?.kind === 'text' && last.citations, [
    { kind: 'url', url: 'https://2.example', title: 'T', start: 0, end: 2 },
    { kind: 'url', url: 'https://3.example' },
  ]);
});

test('whole bodies: what is no answer is an error of its own kind', () => {
  const fault = (reason: string) => gatewayError('upstream_error', { reason });
  assert.throws(() => decodeWhole('<html>'), fault('undecodable'));
  assert.throws(() => decodeWhole('[]'), fault('undecodable'));
  assert.throws(() => decodeWhole({}), fault('empty'));
  assert.throws(() => decodeWhole({ candidates: [] }), fault('empty'));
  assert.throws(() => decodeWhole({ candidates: [{ content: {} }] }), fault('truncated'));
});

test('G6: a stream that came as one JSON array is that stream', () => {
  const args = '{"n":1.0,"b":[ 1 ]}';
  const call = `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":${args}}}]}}]}`;
  const chunks = [chunkOf([{ text: 'a' }]), chunkOf([{ text: 'b' }]), 'CALL', STOP, { usageMetadata: { promptTokenCount: 3 } }];
  const body = ` [${chunks.map((chunk) => JSON.stringify(chunk)).join('\n,\n')}] `.replace('"CALL"', call);
  assert.deepEqual(decodeWhole(body), decodeStream(chunks.map((chunk) => (chunk === 'CALL' ? call : chunk))));
  assert.match(JSON.stringify(decodeWhole(body)), /1\.0/);

  const fault = (reason: string) => gatewayError('upstream_error', { reason });
  assert.throws(() => decodeWhole([chunkOf([{ text: 'a' }])]), fault('truncated'));
  assert.throws(() => decodeWhole([{}]), fault('empty'));
  assert.throws(() => decodeWhole([STOP, 'x']), fault('undecodable'));
  assert.equal(decodeWhole([{ error: { code: 503, message: 'no' } }]).at(-1)?.type, 'response.end');
});

test('the stream is finished once a finish reason came, and ended once it closed', () => {
  const decoder = new GenerateContentDecoder(contextOf());
  assert.deepEqual([decoder.finished, decoder.ended], [false, false]);
  decoder.push(frameOf(chunkOf([{ text: 'a' }], 'STOP')), []);
  assert.deepEqual([decoder.finished, decoder.ended], [true, false]);
  decoder.end([]);
  assert.deepEqual([decoder.finished, decoder.ended], [false, true]);
  const ignored: never[] = [];
  decoder.push(frameOf('garbage'), ignored);
  assert.deepEqual(ignored, []);
});

test('G14: answers with the field names of the definition are read as those with the names of the wire', () => {
  const snake = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(snake);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [
        name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
        name === 'args' ? member : snake(member),
      ]),
    );
  };
  const usageMetadata = {
    promptTokenCount: 10,
    cachedContentTokenCount: 4,
    candidatesTokenCount: 5,
    thoughtsTokenCount: 2,
    totalTokenCount: 17,
    promptTokensDetails: [{ modality: 'IMAGE', tokenCount: 3 }],
  };
  const chunks = [
    { ...(chunkOf([{ text: 'hm', thought: true, thoughtSignature: 'S1' }]) as object), responseId: 'r1', modelVersion: 'm1' },
    chunkOf([
      { functionCall: { name: 'f', id: 'c', args: { snake_case: 1.0, camelCase: { inner_name: [] } } }, thoughtSignature: 'S2' },
    ]),
    chunkOf([{ inlineData: { mimeType: 'image/png', data: 'AAAA' } }]),
    { ...(chunkOf([{ text: 'done' }], 'MAX_TOKENS') as object), usageMetadata },
  ];
  const read = decodeStream(chunks);
  assert.equal(read.findLast(({ type }) => type === 'usage.report') !== undefined, true);
  assert.deepEqual(decodeStream(chunks.map(snake)), read);
  const alone = [chunkOf([{ text: 'done' }], 'STOP'), { usage_metadata: snake(usageMetadata) }];
  assert.deepEqual(decodeStream(alone), decodeStream([chunkOf([{ text: 'done' }], 'STOP'), { usageMetadata }]));
  const counters = chunkOf([{ text: 'done' }], 'STOP') as object;
  assert.deepEqual(
    decodeStream([{ ...counters, usageMetadata: snake(usageMetadata) }]),
    decodeStream([{ ...counters, usageMetadata }]),
  );
  assert.deepEqual(
    decodeStream([snake({ promptFeedback: { blockReason: 'SAFETY' } })]),
    decodeStream([{ promptFeedback: { blockReason: 'SAFETY' } }]),
  );
});

test('grounding whose numbers are off by what the server trimmed stands where its words are, if that is one place', () => {
  const support = (startIndex: number, endIndex: number, text: string) => ({
    segment: { startIndex, endIndex, text },
    groundingChunkIndices: [0],
  });
  const groundingMetadata = {
    groundingChunks: [{ web: { uri: 'https://a.example' } }],
    groundingSupports: [support(1, 6, '€ro.'), support(8, 13, 'Twice'), support(8, 13, 'Never')],
  };
  const [item] = items([chunkOf([{ text: '😀€ro. Twice Twice' }], 'STOP', { groundingMetadata })]);
  assert.deepEqual(item?.kind === 'text' && item.citations, [
    { kind: 'url', url: 'https://a.example', start: 1, end: 5 },
    { kind: 'url', url: 'https://a.example' },
  ]);
});
