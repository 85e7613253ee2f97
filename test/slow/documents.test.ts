/**
 * The commands of README.md, docs/first-steps.md, docs/convert.md and docs/admin-api.md, as they stand there, typed into a shell
 * in a checkout of its own. Only ports, a token and the addresses of upstreams are others.
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { isObject } from '../../src/codecs/canonical/json.ts';
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts';
import { freePort } from '../support/processes.ts';

const execute = promisify(execFile);

/** The blocks of a document in one language, in their order. */
function blocks(document: string, language: string): string[] {
  const text = readFileSync(document, 'utf8');
  return [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```/gm)]
    .filter(([, name]) => name === language)
    .map(([, , block = '']) => block);
}

interface Checkout extends AsyncDisposable {
  readonly folder: string;
  /** The port of the listener for operators. */
  readonly operations: number;
  /** Replaces the ports that documents name by those in use here. */
  located(block: string): string;
  /** Runs a block in one shell, which ends at the first command that fails. */
  shell(block: string): Promise<string>;
  /** `npm start`, or `mizu serve`; resolves once it listens. */
  start(command: string): Promise<void>;
}

/** A folder with what a clone has, its packages installed. */
async function checkout(env: Record<string, string> = {}): Promise<Checkout> {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-checkout-'));
  for (const name of ['package.json', 'src', 'static', 'bin', 'node_modules', 'mizu.schema.json']) {
    symlinkSync(resolve(name), join(folder, name));
  }
  const [port, operations] = [await freePort(), await freePort()];
  const environment = { PATH: process.env['PATH'] ?? '', HOME: folder, PORT: String(port), ...env };
  const located = (block: string): string => block.replaceAll(':8080', `:${port}`).replaceAll(':8081', `:${operations}`);
  const ending: (() => Promise<void>)[] = [];
  return {
    folder,
    operations,
    located,
    async shell(block) {
      const script = ['set -eo pipefail', 'mizu() { npm run --silent mizu -- "$@"; }', located(block)].join('\n');
      return (await execute('bash', ['-c', script], { cwd: folder, env: environment, timeout: 120_000 })).stdout;
    },
    async start(command) {
      const child = spawn('bash', ['-c', command], { cwd: folder, env: environment, stdio: 'pipe', detached: true });
      const exited = once(child, 'exit');
      let printed = '';
      const listens = new Promise<void>((done, fail) => {
        for (const stream of [child.stdout, child.stderr]) {
          stream.on('data', (chunk: Buffer) => {
            printed += chunk.toString();
            if (printed.includes(`Mizu listens on http://127.0.0.1:${port}`)) done();
          });
        }
        exited.then(() => fail(new Error(printed)), fail);
      });
      ending.push(async () => {
        // The whole group: npm between the shell and the gateway passes signals on only in part.
        if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
        await exited;
      });
      await listens;
    },
    async [Symbol.asyncDispose]() {
      for (const end of ending) await end();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** One command each; a comment may stand above it. */
const commandsOf = (block: string): string[] => block.split(/\n{2,}/).filter((part) => part.includes('curl '));

test('README.md and docs/first-steps.md: the demonstration answers each command', async () => {
  await using clone = await checkout();
  const [, calls = ''] = blocks('README.md', 'sh');
  await clone.start('npm start');
  const endings = [/^data: \[DONE\]$/m, /^event: response\.completed$/m, /^event: message_stop$/m, /^data: \[DONE\]$/m];
  const commands = commandsOf(calls);
  assert.equal(commands.length, endings.length);
  for (const [at, each] of commands.entries()) {
    const answer = await clone.shell(each);
    assert.match(answer, endings[at] ?? /^$/, each);
    assert.doesNotMatch(answer, /"error":\{/, each);
    const whole: unknown = JSON.parse(await clone.shell(each.replace('"stream":true,', '')));
    assert.ok(isObject(whole) && (whole['error'] ?? null) === null, each);
  }

  const [pictures = '', videos = ''] = blocks('docs/first-steps.md', 'sh');
  const drawn = await clone.shell(pictures);
  for (const name of ['door', 'router', 'tool', 'blue']) {
    assert.equal(readFileSync(join(clone.folder, `${name}.png`)).toString('latin1', 1, 4), 'PNG', name);
  }
  assert.equal(drawn.match(/"b64_json"/g)?.length, 4, 'three pictures at once and one as a stream');
  // No failure prints a megabyte of pictures.
  assert.ok(/^event: image_generation\.completed$/m.test(drawn));
  assert.equal(/"embedding":\s*\[([^\]]*)\]/.exec(drawn)?.[1]?.split(',').length, 8);
  assert.match(await clone.shell(videos), /"status":"(?:queued|submitting|running|succeeded)"/);

  const [clients = ''] = blocks('docs/first-steps.md', 'ts');
  writeFileSync(
    join(clone.folder, 'clients.mjs'),
    clone.located(`${clients}
      const chat = await openai.chat.completions.create({ model: 'demo-chat', messages: [{ role: 'user', content: 'hi' }] });
      const message = await anthropic.messages.create({ model: 'demo-gemini', max_tokens: 50, messages: [{ role: 'user', content: 'hi' }] });
      console.log(chat.choices[0].message.content.length > 0 && message.content.length > 0);`),
  );
  assert.equal(await clone.shell('npm exec -- node clients.mjs'), 'true\n');
});

let sim: Simulator;
before(async () => {
  sim = await startSimulator();
});
after(() => sim.close());

test('docs/first-steps.md and docs/admin-api.md: upstreams of one’s own', async () => {
  await using clone = await checkout({ OPENAI_API_KEY: 'sk-one', ANTHROPIC_API_KEY: 'sk-two' });
  const [file = ''] = blocks('docs/first-steps.md', 'jsonc');
  const here = clone.located(file).replaceAll(/https:\/\/api\.(?:openai|anthropic)\.com/g, sim.url);
  const ports = `"operations": { "port": ${clone.operations} }, "channels"`;
  writeFileSync(join(clone.folder, 'mizu.config.json'), here.replace('"channels"', ports));
  const [, , verbs = ''] = blocks('docs/first-steps.md', 'sh');
  const lines = verbs.split('\n').filter((line) => line !== '' && !line.startsWith('export'));
  const serve = lines.findIndex((line) => line.includes('-- serve'));
  assert.ok(serve > 0);
  const key = (await clone.shell(lines.slice(0, serve).join('\n'))).trim().split('\n').at(-1) ?? '';
  assert.match(key, /^sk-mizu-/);
  await clone.start(lines[serve]?.replace(/#.*/, '') ?? '');
  const ask = (model: string): string =>
    [
      'curl -s http://127.0.0.1:8080/v1/chat/completions',
      `-H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json'`,
      `-d '{"model":"${model}","messages":[{"role":"user","content":"hi"}]}'`,
    ].join(' ');
  for (const model of ['gpt-5', 'claude-opus']) assert.match(await clone.shell(ask(model)), /"finish_reason":"stop"/, model);
  for (const line of lines.slice(serve + 1)) {
    // A log that is followed has no end.
    const printed = await clone.shell(line.replace(/#.*/, '').replace('--follow', ''));
    assert.match(printed, line.includes('ledger') ? /no difference/ : /claude-opus/, line);
  }

  const [tokens = '', accounts = '', credit = ''] = blocks('docs/admin-api.md', 'sh');
  const made = (await clone.shell(tokens)).split('\n')[0] ?? '';
  assert.match(made, /^mizu-admin-/);
  const [header = '', ...asked] = accounts.replace('mizu-admin-…', made).split('\n');
  assert.match(await clone.shell([header, ...asked].join('\n').replace('curl', 'curl -s')), /"name":"acme"/);
  assert.match(await clone.shell(`${header}\n${credit.replace('curl', 'curl -s')}`), /"name":"acme".*"balance":"49\.9/);
});

test('docs/convert.md: each command converts a stream', async () => {
  await using clone = await checkout();
  const ask = async (path: string, body: object): Promise<string> => {
    const answer = await fetch(sim.url + path, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: 'Bearer sk-one',
        'x-api-key': 'sk-one',
        'anthropic-version': '2023-06-01',
      },
      body: JSON.stringify(body),
    });
    return await answer.text();
  };
  const messages = [{ role: 'user', content: 'hi' }];
  const streams: Readonly<Record<string, string>> = {
    chat: await ask('/v1/chat/completions', { model: 'm', stream: true, messages }),
    messages: await ask('/v1/messages', { model: 'm', max_tokens: 100, stream: true, messages }),
    gemini: await ask('/v1beta/models/m:streamGenerateContent?alt=sse', {
      contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
    }),
  };
  writeFileSync(join(clone.folder, 'request.json'), JSON.stringify({ model: 'm', stream: true, messages }));
  const commands = (blocks('docs/convert.md', 'sh')[0] ?? '').trim().split('\n');
  const endings = [/^data: \[DONE\]$/m, /^event: response\.completed$/m, /"stop_reason":"end_turn"/, /^data: \[DONE\]$/m];
  assert.equal(commands.length, endings.length);
  for (const [at, each] of commands.entries()) {
    const from = /--from (\w+)/.exec(each)?.[1] ?? '';
    writeFileSync(join(clone.folder, 'stream.sse'), streams[from] ?? assert.fail(each));
    assert.match(await clone.shell(each), endings[at] ?? /^$/, each);
  }
});
