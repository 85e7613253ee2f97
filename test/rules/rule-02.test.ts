/**
 * Rule 2: files across providers are content or a public URL; a private reference stays with its provider, Channel and
 * credential.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeWith, need } from './requests.ts';
import { convert, type Json } from '../failures/through.ts';

const PDF = 'JVBERi0xLjQ=';
const chat = (file: object): object => ({ messages: [{ role: 'user', content: [{ type: 'file', file }] }] });
const responses = (part: object): object => ({ input: [{ role: 'user', content: [{ type: 'input_file', ...part }] }] });
const messages = (source: object): object => ({
  max_tokens: 9,
  messages: [{ role: 'user', content: [{ type: 'document', source }] }],
});

test('rule 2: content crosses from every client to every upstream', () => {
  const data = `data:application/pdf;base64,${PDF}`;
  const asked = [
    ['chat', chat({ filename: 'a.pdf', file_data: data })],
    ['responses', responses({ filename: 'a.pdf', file_data: data })],
    ['messages', messages({ type: 'base64', media_type: 'application/pdf', data: PDF })],
  ] as const;
  for (const [client, body] of asked) {
    for (const upstream of ['chat', 'responses', 'messages', 'gemini'] as const) {
      assert.ok(JSON.stringify(convert(client, upstream, body)).includes(PDF), `${client} to ${upstream}`);
    }
  }
});

test('rule 2: a PDF that stands where a picture does crosses as the document that it is', () => {
  const data = `data:application/pdf;base64,${PDF}`;
  const shown = { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: data } }] }] };
  const drawn = { input: [{ role: 'user', content: [{ type: 'input_image', image_url: data }] }] };
  for (const [client, body] of [
    ['chat', shown],
    ['responses', drawn],
  ] as const) {
    assert.match(JSON.stringify(convert(client, 'messages', body)), /"type":"document","source":\{"type":"base64"/);
    assert.match(JSON.stringify(convert(client, 'gemini', body)), /"inlineData":\{"mimeType":"application\/pdf"/);
  }
  assert.match(JSON.stringify(convert('chat', 'responses', shown)), /"type":"input_file"/);
  assert.match(JSON.stringify(convert('responses', 'chat', drawn)), /"type":"file"/);
});

test('rule 2: a public URL crosses to the dialects that take one, and is refused by its path elsewhere', () => {
  const url = 'https://example.com/a.pdf';
  for (const [client, body] of [
    ['responses', responses({ file_url: url })],
    ['messages', messages({ type: 'url', url })],
  ] as const) {
    for (const upstream of ['responses', 'messages', 'gemini'] as const) {
      assert.ok(JSON.stringify(convert(client, upstream, body)).includes(url), `${client} to ${upstream}`);
    }
    assert.throws(() => convert(client, 'chat', body), need({ status: 400, code: 'unsupported_conversion' }));
  }
});

test('rule 2: a private reference is marked as such in every client dialect, so that it goes to its own scope only', () => {
  const asked = [
    ['chat', chat({ file_id: 'file-1' })],
    ['responses', responses({ file_id: 'file-1' })],
    ['messages', messages({ type: 'file', file_id: 'file-1' })],
  ] as const;
  for (const [client, body] of asked) {
    const { items } = decodeWith(client, body);
    const found = items.flatMap((item) => (item.kind === 'media' ? [item.media.source] : []));
    assert.deepEqual(
      found.map((source: Json) => [source.from, source.id]),
      [['reference', 'file-1']],
    );
  }
});

test('rule 2: private files of built-in tools and their results are marked, too', () => {
  const shot = { type: 'computer_call_output', call_id: 'c', output: { type: 'computer_screenshot', file_id: 'file-1' } };
  const [item] = decodeWith('responses', { input: [shot] }).items;
  assert.equal(item?.kind === 'native' ? item.referenceAt : undefined, 'input[0].output.file_id');
  const shell = { type: 'shell', environment: { type: 'container_auto', file_ids: ['file-1'] } };
  const [tool] = decodeWith('responses', { input: 'x', tools: [shell] }).tools;
  assert.equal(tool?.kind === 'native' ? tool.referenceAt : undefined, 'tools[0].environment.file_ids');
});
