/**
 * The operator's day of docs/operating.md: its very commands are typed into a shell, beside two upstreams, and what is printed is
 * what stands there.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { freePort } from '../../support/processes.ts';

const TEXT = readFileSync('docs/operating.md', 'utf8');
const [, DAY = ''] = /^## A day\n([\s\S]*?)(?=^## |$(?![\s\S]))/m.exec(TEXT) ?? [];
const blocks = (kind: string): string[] =>
  [...DAY.matchAll(new RegExp(`\`\`\`${kind}\\n([\\s\\S]*?)\`\`\``, 'g'))].map(([, text = '']) => text);

interface Step {
  readonly command: string;
  readonly printed: string[];
}

/** A line that begins with `$` is typed, the lines behind it are printed. */
function steps(): Step[] {
  const found: Step[] = [];
  for (const line of blocks('console').join('').trimEnd().split('\n')) {
    if (line.startsWith('$ ')) found.push({ command: line.slice(2), printed: [] });
    else found.at(-1)?.printed.push(line);
  }
  return found;
}

/** Upstreams in a thread of their own: this one waits for the shell. */
const UPSTREAMS = `
import { parentPort } from 'node:worker_threads';
import { startSimulator } from '${new URL('../../../src/simulator/simulator.ts', import.meta.url).href}';
const pace = { firstMs: 0, eventMs: 0 };
const openai = await startSimulator({ pace });
const anthropic = await startSimulator({ pace, script: { faults: [{ type: 'status', status: 529 }], match: ({ model }) => model !== undefined, times: 9 } });
parentPort.postMessage([openai.url, anthropic.url]);
`;

const END = '--- end of step ---';
const matcher = (line: string): RegExp =>
  new RegExp(
    `^${line
      .split('…')
      .map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
      .join('.*')}$`,
  );

test('the commands of the operator’s day print what the document says', { timeout: 300_000 }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-day-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(UPSTREAMS)}`));
  t.after(() => worker.terminate());
  const [openai, anthropic] = await new Promise<string[]>((done) => worker.once('message', done));
  const [port, operations] = [await freePort(), await freePort()];
  const file = JSON.parse(blocks('json')[0] ?? '{}');
  const served = { ...file, listen: { port }, operations: { port: operations }, warm_up_ms: 0, dispatch: { max_attempts: 1 } };
  const text = JSON.stringify(served)
    .replace('https://api.openai.com/v1', openai ?? '')
    .replace('https://api.anthropic.com/v1', anthropic ?? '');
  writeFileSync(join(folder, 'mizu.config.json'), text);
  const day = steps();
  assert.ok(day.length > 25);
  const commands = day.map(
    ({ command }) => `${command.replaceAll(':8080', `:${port}`).replaceAll(':8081', `:${operations}`)}\necho '${END}'\n`,
  );
  // A file, as where it is installed: of a function in the background `kill %1` ends the shell around it and leaves the gateway.
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'mizu'), `#!/bin/sh\nexec '${process.execPath}' '${resolve('src/main.ts')}' "$@"\n`, { mode: 0o755 });
  const env = { PATH: `${bin}:${process.env['PATH'] ?? ''}`, OPENAI_API_KEY: 'sk-one', ANTHROPIC_API_KEY: 'sk-two' };
  const input = `exec 2>&1\ntrap 'kill $(jobs -p) 2>/dev/null' EXIT\n${commands.join('')}`;
  const { stdout } = spawnSync('bash', ['-s'], { cwd: folder, env, input, encoding: 'utf8', timeout: 280_000 });
  const printed = stdout.split(`${END}\n`).map((part) => part.trimEnd());
  const wrong: string[] = [];
  for (const [at, { command, printed: expected }] of day.entries()) {
    const lines = printed[at] === '' ? [] : (printed[at]?.split('\n') ?? []);
    const fits = lines.length === expected.length && expected.every((line, n) => matcher(line).test(lines[n] ?? ''));
    if (!fits) wrong.push(`$ ${command}\n${lines.join('\n')}\n--- the document:\n${expected.join('\n')}`);
  }
  assert.deepEqual(wrong, []);
  for (const url of [`http://127.0.0.1:${port}`, `http://127.0.0.1:${operations}`])
    await assert.rejects(fetch(url), { name: 'TypeError', message: 'fetch failed' }, 'the gateway has outlived its day');
});
