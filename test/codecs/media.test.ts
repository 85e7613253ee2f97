import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  audioFormatOf,
  dataUri,
  essenceOf,
  filenameOf,
  inUtf8,
  joinBase64,
  mimeOfAudioFormat,
  mimeOfFilename,
  parseDataUri,
  pictureOrFile,
  readBase64,
  realMime,
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
    ['data:image/png;base64,A A\t-\r\n_', { mime: 'image/png', data: 'AA+/' }],
    ['data:image/png;base64,AA\u00a0AA', undefined],
    [`data:image/png${';'.repeat(2_000)},x`, undefined],
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
  it('are names where no format has another', () => {
    assert.equal(mimeOfAudioFormat('WAV'), 'audio/wav');
    assert.equal(mimeOfAudioFormat('webm'), 'audio/webm');
    assert.equal(essenceOf(' Text/Plain '), 'text/plain');
    assert.equal(sniffMime(Buffer.from('RIFF0000AVI LIST').toString('base64')), undefined);
    for (const [mime, name] of [
      ['application/pdf', 'file.pdf'],
      ['text/csv; charset=utf-8', 'file.txt'],
      ['image/png', 'file'],
    ] as const)
      assert.equal(filenameOf(mime), name);
  });
  it('say what the content is, or nothing', () => {
    for (const [mime, real] of [
      ['image/png', 'image/png'],
      ['Image/JPG', 'image/jpeg'],
      ['text/plain; charset=x', 'text/plain; charset=x'],
      ['application/octet-stream', undefined],
      ['image/*', undefined],
      ['png', undefined],
      [undefined, undefined],
    ] as const)
      assert.equal(realMime(mime), real);
    const inline = (mime: string, data: string) => ({ from: 'inline', mime, data }) as const;
    assert.equal(pictureOrFile(inline('image/png', 'AAAA')), 'image');
    assert.equal(pictureOrFile(inline('application/pdf', 'AAAA')), 'file');
    assert.equal(pictureOrFile(inline('', 'JVBERi0x')), 'file');
    assert.equal(pictureOrFile(inline('', 'AAAA')), 'image');
    assert.equal(pictureOrFile({ from: 'url', url: 'https://x.test/a.pdf' }), 'image');
  });
  it('are joined from pieces that are padded each for itself', () => {
    const pieces = ['a', 'bc', 'def'].map((text) => Buffer.from(text).toString('base64'));
    assert.equal(joinBase64(pieces), Buffer.from('abcdef').toString('base64'));
    assert.equal(joinBase64(['YWJj', 'ZGVm', 'Zw==']), 'YWJjZGVmZw==');
    assert.equal(joinBase64([]), '');
    // A piece whose length is no multiple of four is padded for itself, too.
    assert.equal(joinBase64(['YQ', 'YmM=']), 'YWJj');
    assert.equal(joinBase64(['YQ']), 'YQ');
  });
  it('read Base64 as URIs carry it', () => {
    for (const [said, data] of [
      ['YWJj', 'YWJj'],
      ['YW Jj\r\n', 'YWJj'],
      ['_-8%3D', '/+8='],
      ['__8=', '//8='],
      ['--8=', '++8='],
      ['%5', undefined],
      ['%5g', undefined],
      ['%g5', undefined],
      ['%', undefined],
      ['%2f%2F', '//'],
      ['a,b', undefined],
    ] as const)
      assert.equal(readBase64(said), data, said);
  });
  it('are in UTF-8 for protocols that read no charset', () => {
    const latin = Buffer.from([0xe9]).toString('base64');
    assert.equal(inUtf8({ mime: 'text/plain; charset="ISO-8859-1"', data: latin }), Buffer.from('é').toString('base64'));
    for (const mime of ['text/plain', 'text/plain;charset=utf-8', 'text/plain; charset="US-ASCII"'])
      assert.equal(inUtf8({ mime, data: 'YQ' }), 'YQ', mime);
  });
  it('decide the charset of text', () => {
    assert.equal(textOfInline({ mime: 'text/plain;charset=iso-8859-1', data: Buffer.from([0xe9]).toString('base64') }), 'é');
    assert.equal(textOfInline({ mime: 'text/plain;charset=nonsense', data: Buffer.from('é').toString('base64') }), 'é');
  });
  it('have a byte order mark that decides before the charset', () => {
    const little = Buffer.from('\ufeffé,1', 'utf16le');
    for (const bytes of [little, Buffer.from(little).swap16(), Buffer.from('\ufeffé,1')])
      assert.equal(textOfInline({ mime: 'text/csv', data: bytes.toString('base64') }), 'é,1');
  });
  it('are no text where the bytes are none in its charset', () => {
    for (const mime of ['text/csv', 'text/csv;charset=utf-8', 'text/csv;charset=nonsense']) {
      const data = Buffer.from([0x61, 0xe9, 0x62]).toString('base64');
      assert.equal(textOfInline({ mime, data }), undefined, mime);
      assert.equal(inUtf8({ mime, data }), data, mime);
    }
  });
});
