/** Rule 4: media that the target cannot say is an explicit error; a stream then ends with an error and never with success. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { need } from './requests.ts';
import { convert, created, type Json, sent, through } from '../failures/through.ts';

const PNG = 'iVBORw0KGgo=';
const image = {
  candidates: [
    { content: { role: 'model', parts: [{ inlineData: { mimeType: 'image/png', data: PNG } }] }, finishReason: 'STOP' },
  ],
};
const before = { candidates: [{ content: { role: 'model', parts: [{ text: 'Here: ' }] } }] };
const audio = {
  candidates: [
    { content: { role: 'model', parts: [{ inlineData: { mimeType: 'audio/wav', data: 'UklGRg==' } }] }, finishReason: 'STOP' },
  ],
};
const drawn = { id: 'ig_1', type: 'image_generation_call', status: 'completed', result: PNG };

test('rule 4: an image reaches chat and responses clients, and ends a messages stream with an error', () => {
  for (const client of ['chat', 'responses'] as const) assert.ok(through('gemini', client, [before, image]).text.includes(PNG));
  const heard = through('gemini', 'messages', [before, image]);
  assert.equal(heard.names.at(-1), 'error');
  assert.equal((heard.events.at(-1) as Json).error.code, 'response_not_representable');
  assert.doesNotMatch(heard.text, /message_stop|message_delta/);
  assert.match(heard.text, /Here: /, 'what was said before stays');
  assert.equal(heard.body, undefined);
});

test('rule 4: an image of a responses upstream is no success for a messages client either', () => {
  const events = [
    created(),
    { type: 'response.output_item.added', output_index: 0, item: { ...drawn, status: 'in_progress', result: null } },
    { type: 'response.output_item.done', output_index: 0, item: drawn },
    {
      type: 'response.completed',
      response: { id: 'resp_1', object: 'response', status: 'completed', model: 'm', output: [drawn] },
    },
  ];
  const heard = through('responses', 'messages', events);
  assert.equal(heard.names.at(-1), 'error');
  assert.equal(heard.body, undefined);
});

test('rule 4: audio ends a responses and a messages stream with their error form', () => {
  const responses = through('gemini', 'responses', [audio]);
  assert.equal(responses.names.at(-1), 'response.failed');
  assert.equal((responses.events.at(-1) as Json).response.error.code, 'response_not_representable');
  assert.equal(through('gemini', 'messages', [audio]).names.at(-1), 'error');
});

test('rule 4: sound of a responses upstream reaches chat clients, and is no success for messages clients', () => {
  const part = { type: 'output_audio', data: 'AAAABBBB', transcript: 'hello' };
  const spoken = { id: 'm', type: 'message', role: 'assistant', status: 'completed', content: [part] };
  const completed = (output: object[]): object => ({
    type: 'response.completed',
    response: { id: 'resp_1', object: 'response', status: 'completed', model: 'm', output },
  });
  const streams = [
    [created(), { type: 'response.output_item.done', output_index: 0, item: spoken }, completed([spoken])],
    [
      created(),
      { type: 'response.audio.delta', delta: 'AAAA' },
      { type: 'response.audio.delta', delta: 'BBBB' },
      { type: 'response.audio.transcript.delta', delta: 'hello' },
      { type: 'response.audio.done' },
      completed([]),
    ],
  ];
  for (const events of streams) {
    assert.match(through('responses', 'chat', events).text, /"audio":\{[^}]*"data":"AAAABBBB","transcript":"hello"/);
    assert.equal(through('responses', 'messages', events).names.at(-1), 'error');
    assert.equal(through('responses', 'responses', events).names.at(-1), 'response.completed');
  }
});

test('rule 4: media of a request that the upstream cannot take is refused by its path', () => {
  const content = [
    { type: 'text', text: 'x' },
    { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } },
  ];
  for (const upstream of ['responses', 'messages'] as const) {
    assert.throws(
      () => convert('chat', upstream, { messages: [{ role: 'user', content }] }),
      need({ status: 400, code: 'unsupported_conversion', param: /^messages\[0\]\.content\[1\]/ }),
    );
  }
});

test('a video of a chat request reaches Gemini, and is refused by its path elsewhere', () => {
  const asked = (url: string): object => ({ messages: [{ role: 'user', content: [{ type: 'video_url', video_url: { url } }] }] });
  for (const [url, part] of [
    ['data:video/webm;base64,AAAA', { inlineData: { mimeType: 'video/webm', data: 'AAAA' } }],
    ['https://e.x/a.mov?s=1', { fileData: { mimeType: 'video/quicktime', fileUri: 'https://e.x/a.mov?s=1' } }],
    ['https://youtu.be/lCdaVNyHtjU', { fileData: { mimeType: 'video/mp4', fileUri: 'https://youtu.be/lCdaVNyHtjU' } }],
  ] as const) {
    assert.deepEqual(convert('chat', 'gemini', asked(url)).contents, [{ role: 'user', parts: [part] }]);
    for (const upstream of ['responses', 'messages'] as const) {
      assert.throws(
        () => convert('chat', upstream, asked(url)),
        need({ code: 'unsupported_conversion', param: /^messages\[0\].content\[0\]/ }),
      );
    }
  }
});

test('media of the user that only its own protocol knows are refused at their path, never left out', () => {
  const video = {
    input: [
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'q' },
          { type: 'input_video', video_url: 'https://e.x/a.mp4' },
        ],
      },
    ],
  };
  for (const upstream of ['chat', 'messages', 'gemini'] as const) {
    assert.throws(
      () => sent('responses', upstream, video),
      need({ code: 'unsupported_conversion', param: /^input\[0\].content\[1\]/ }),
    );
  }
  const upload = { max_tokens: 9, messages: [{ role: 'user', content: [{ type: 'container_upload', file_id: 'f' }] }] };
  for (const upstream of ['chat', 'responses', 'gemini'] as const) {
    assert.throws(
      () => sent('messages', upstream, upload),
      need({ code: 'unsupported_conversion', param: /^messages\[0\].content\[0\]/ }),
    );
  }
});
