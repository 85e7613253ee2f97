import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  audioFormatOf,
  dataUri,
  essenceOf,
  joinBase64,
  mimeOfAudioFormat,
  mimeOfFilename,
  parseDataUri,
  sniffMime,
  sourceOfUrl,
  textOfInline,
} from '../../src/codecs/media.ts';

describe('data URIs', () => {
  const cases: [string, { mime: string; data: string } | undefined][] = [
    ['data:application/pdf;base64,JVBERi0=', { mime: 'application/pdf', data: 'JVBERi0=' }],
    ['DATA:Image/PNG;BASE64,AAAA', { mime: 'image/png', data: 'AAAA' }],
    ['data:text/plain;charset=utf-8;base64,aGk=', { mime: 'text/plain;charset=utf-8', data: 'aGk=' }],
    ['data:text/plain,a%20b', { mime: 'text/plain', data: 'YSBi' }],
    ['data:,h%C3%A9', { mime: 'text/plain', data: 'aMOp' }],
    ['data:;base64,iVBORw0KGgoA', { mime: 'image/png', data: 'iVBORw0KGgoA' }],
    ['data:image/png;base64,AA%2BA', { mime: 'image/png', data: 'AA+A' }],
    ['data:image/png;base64,AA-_\n', { mime: 'image/png', data: 'AA+/' }],
    ['data:image/png;base64', undefined],
    ['data:image/png;base64,<>', undefined],
    ['data:text/plain,%zz', undefined],
    ['https://example.com/a.png', undefined],
  ];
  for (const [uri, expected] of cases) it(uri.slice(0, 50), () => assert.deepEqual(parseDataUri(uri), expected));

  it('come back from what was built', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const inline = { mime: 'application/x-test', data: Buffer.from(bytes).toString('base64') };
        assert.deepEqual(parseDataUri(dataUri(inline)), inline);
      }),
    );
  });

  it('carry any text when percent-encoded', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        const inline = parseDataUri(`data:text/plain;charset=utf-8,${encodeURIComponent(text)}`);
        assert.equal(inline && textOfInline(inline), text);
      }),
    );
  });

  it('are private files where only a credential opens them', () => {
    for (const id of ['gs://bucket/x.png', 'https://generativelanguage.googleapis.com/v1beta/files/abc']) {
      assert.deepEqual(sourceOfUrl(id), { from: 'reference', id });
    }
  });

  it('leave other URLs alone', () => {
    assert.deepEqual(sourceOfUrl('https://example.com/x'), { from: 'url', url: 'https://example.com/x' });
    assert.deepEqual(sourceOfUrl('data:image/gif;base64,AAAA'), { from: 'inline', mime: 'image/gif', data: 'AAAA' });
  });
});

describe('types', () => {
  it('are found by extension, prefix and format', () => {
    assert.equal(mimeOfFilename('report.PDF'), 'application/pdf');
    assert.equal(mimeOfFilename('https://example.com/a/b.jpg?size=1.png'), 'image/jpeg');
    assert.equal(mimeOfFilename('README'), undefined);
    assert.equal(sniffMime(Buffer.from('RIFF0000WAVEfmt ').toString('base64')), 'audio/wav');
    assert.equal(sniffMime(Buffer.from('RIFF0000WEBPVP8 ').toString('base64')), 'image/webp');
    assert.equal(sniffMime('AAAA'), undefined);
    assert.equal(mimeOfAudioFormat('mp3'), 'audio/mpeg');
    assert.equal(audioFormatOf('audio/x-wav;rate=1'), 'wav');
    assert.equal(audioFormatOf('audio/webm'), undefined);
    assert.equal(essenceOf('Text/Plain; charset=utf-8'), 'text/plain');
  });
  it('are joined from pieces that are padded each for itself', () => {
    const pieces = ['a', 'bc', 'def'].map((text) => Buffer.from(text).toString('base64'));
    assert.equal(joinBase64(pieces), Buffer.from('abcdef').toString('base64'));
    assert.equal(joinBase64(['YWJj', 'ZGVm', 'Zw==']), 'YWJjZGVmZw==');
    assert.equal(joinBase64([]), '');
  });
  it('decide the charset of text', () => {
    assert.equal(textOfInline({ mime: 'text/plain;charset=iso-8859-1', data: Buffer.from([0xe9]).toString('base64') }), 'é');
    assert.equal(textOfInline({ mime: 'text/plain;charset=nonsense', data: Buffer.from('é').toString('base64') }), 'é');
  });
});
