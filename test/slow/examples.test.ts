/**
 * Every example is run, as far as this machine has its language, against a server that writes down what arrives and refuses it.
 */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { API_REFERENCE } from '../../src/pages/api-reference/api-reference.ts';
import { LANGUAGES, PROTOCOL_EXAMPLES } from '../../src/pages/api-reference/examples.ts';
import { exampleText } from '../../src/pages/examples.ts';

interface Arrived {
  readonly method: string;
  readonly path: string;
  readonly authorization: string;
  readonly body: string;
}

async function recorder() {
  const arrived: Arrived[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method = '', url = '', headers } = request;
    arrived.push({
      method,
      path: url,
      authorization: headers.authorization ?? '',
      body: Buffer.concat(chunks).toString('latin1'),
    });
    // 400 is not tried again by any SDK.
    response
      .writeHead(400, { 'content-type': 'application/json' })
      .end('{"error":{"message":"no","type":"invalid_request_error"}}');
  });
  server.on('upgrade', ({ method = '', url = '', headers }, socket) => {
    arrived.push({ method, path: url, authorization: headers.authorization ?? '', body: '' });
    socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return {
    arrived,
    origin: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

function run(command: string, args: readonly string[], cwd: string): Promise<void> {
  const env = { PATH: process.env['PATH'], HOME: cwd, MIZU_API_KEY: 'sk-mizu-example' };
  return new Promise((done) => execFile(command, [...args], { cwd, env, timeout: 20_000 }, () => done()));
}

const has = (command: string) => spawnSync(command, ['--version']).status === 0;

for (const example of PROTOCOL_EXAMPLES) {
  const endpoint = API_REFERENCE.find(({ id }) => id === example.endpoint) ?? assert.fail(example.endpoint);
  for (const [language, command] of [
    ['curl', 'bash'],
    ['typescript', process.execPath],
  ] as const) {
    const tool = language === 'curl' ? (example.id === 'responses-websocket' ? 'websocat' : 'curl') : process.execPath;
    test(`${example.id} in ${language} reaches ${endpoint.method} ${endpoint.path}`, {
      skip: has(tool) ? false : `${tool} is missing`,
    }, async () => {
      await using server = await recorder();
      const folder = mkdtempSync(join(tmpdir(), 'mizu-example-'));
      symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
      writeFileSync(join(folder, 'harbour.png'), 'png');
      writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
      const { extension } = LANGUAGES.find(({ id }) => id === language) ?? LANGUAGES[0];
      const text = exampleText(new URL('../../static/examples/', import.meta.url), example, language);
      writeFileSync(
        join(folder, `example.${extension}`),
        text.replaceAll('__BASE_URL__', server.origin).replaceAll('__MODEL__', 'the-model'),
      );
      await run(command, [`example.${extension}`], folder);
      rmSync(folder, { recursive: true });
      const first = server.arrived[0] ?? assert.fail('nothing arrived');
      assert.deepEqual([first.method, first.path.split('?')[0]], [endpoint.method, endpoint.path]);
      assert.equal(first.authorization, 'Bearer sk-mizu-example');
      if (endpoint.method === 'POST') assert.ok(first.body.includes('the-model'), first.body);
      if (example.request?.body !== undefined && language === 'curl') JSON.parse(first.body);
    });
  }
}

test('the Python examples compile', { skip: has('python3') ? false : 'python3 is missing' }, () => {
  for (const example of PROTOCOL_EXAMPLES) {
    const text = exampleText(new URL('../../static/examples/', import.meta.url), example, 'python');
    const { status, stderr } = spawnSync('python3', ['-c', 'import sys; compile(sys.stdin.read(), "example", "exec")'], {
      input: text,
    });
    assert.equal(status, 0, `${example.id}: ${stderr}`);
  }
});

test('the Go examples are formatted and parse', {
  skip: has('gofmt') || spawnSync('gofmt', ['-h']).status === 2 ? false : 'gofmt is missing',
}, () => {
  for (const example of PROTOCOL_EXAMPLES) {
    const text = `${exampleText(new URL('../../static/examples/', import.meta.url), example, 'go')}\n`;
    const { status, stdout, stderr } = spawnSync('gofmt', [], { input: text });
    assert.equal(status, 0, `${example.id}: ${stderr}`);
    assert.equal(String(stdout), text, example.id);
  }
});
