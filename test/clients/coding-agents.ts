/**
 * Real coding agents, unmodified and headless, each doing a task of several turns with tools against the gateway, over every upstream
 * dialect. The simulator says what a model would; the agents' transcripts are printed. An agent that is not installed is skipped.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { test } from 'node:test';
import type { Script } from '../../src/http/simulator/script.ts';
import { type Simulator, startSimulator } from '../../src/http/simulator/simulator.ts';
import { eventually, KEY, type TestGateway, testGateway } from '../support/test-gateway.ts';
import { AGENTS, commandOf, isInstalled } from './agents.ts';

const ROOT = process.env['MIZU_CLIENTS'] ?? join(tmpdir(), 'mizu-clients');
const UPSTREAMS = ['chat_completion', 'responses', 'messages', 'gemini'] as const;
const MODEL = 'agent-model';
const PROMPT = 'Write the answer into note.txt, read it back, and tell me what it says.';
const FINAL = 'The note says first-42.';
const TIMEOUT_MS = 60_000;

interface Tool {
  readonly name: string;
  /** The member that holds a shell command. */
  readonly command: string;
}

interface Place {
  readonly home: string;
  readonly work: string;
  /** Without `/v1`. */
  readonly url: string;
}

interface Setup {
  readonly title: string;
  readonly agent: string;
  readonly tool: Tool;
  /** Writes the configuration; gives the arguments and the environment. */
  prepare(place: Place): { readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> };
  /** The one socket that the agent is to use for everything. */
  readonly socket?: { readonly version: string; readonly turns: number };
  readonly retries: boolean;
}

function codexConfig({ home, url }: Place, websockets: boolean): void {
  writeFileSync(
    join(home, 'config.toml'),
    `model = "${MODEL}"
model_provider = "gw"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.gw]
name = "Local gateway"
base_url = "${url}/v1"
env_key = "GW_API_KEY"
wire_api = "responses"
supports_websockets = ${websockets}
request_max_retries = 0
stream_max_retries = 2
`,
  );
}

const codexArguments = (work: string, ...more: string[]) => ['exec', '--skip-git-repo-check', '-C', work, ...more, PROMPT];
const SHELL: Tool = { name: 'exec_command', command: 'cmd' };

function codex(title: string, agent: string, socket: Setup['socket'], ...more: string[]): Setup {
  return {
    title,
    agent,
    tool: SHELL,
    ...(socket === undefined ? {} : { socket }),
    retries: true,
    prepare(place) {
      codexConfig(place, socket !== undefined);
      return { args: codexArguments(place.work, ...more), env: { CODEX_HOME: place.home, GW_API_KEY: KEY } };
    },
  };
}

function pi(api: 'openai-completions' | 'openai-responses' | 'anthropic-messages'): Setup {
  return {
    title: `pi over ${api}`,
    agent: 'pi',
    tool: { name: 'bash', command: 'command' },
    retries: false,
    prepare({ home, url }) {
      const baseUrl = api === 'anthropic-messages' ? url : `${url}/v1`;
      const models = [
        {
          id: MODEL,
          name: MODEL,
          reasoning: true,
          input: ['text'],
          contextWindow: 128_000,
          maxTokens: 8_192,
          cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
        },
      ];
      writeFileSync(join(home, 'models.json'), JSON.stringify({ providers: { gw: { baseUrl, api, apiKey: KEY, models } } }));
      return {
        args: ['-p', '--no-session', '--provider', 'gw', '--model', MODEL, PROMPT],
        env: { PI_CODING_AGENT_DIR: home, PI_OFFLINE: '1', PI_TELEMETRY: '0' },
      };
    },
  };
}

const claude: Setup = {
  title: 'Claude Code',
  agent: 'claude',
  tool: { name: 'Bash', command: 'command' },
  retries: false,
  prepare: ({ url }) => ({
    args: ['-p', PROMPT, '--output-format', 'stream-json', '--verbose', '--allowedTools', 'Bash'],
    env: {
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: KEY,
      ANTHROPIC_MODEL: MODEL,
      ANTHROPIC_SMALL_FAST_MODEL: MODEL,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      IS_SANDBOX: '1',
      CLAUDE_CODE_MAX_RETRIES: '0',
    },
  }),
};

function opencode(npm: '@ai-sdk/openai-compatible' | '@ai-sdk/openai' | '@ai-sdk/anthropic'): Setup {
  return {
    title: `opencode with ${npm}`,
    agent: 'opencode',
    tool: { name: 'bash', command: 'command' },
    retries: false,
    prepare({ work, url }) {
      const models = { [MODEL]: { tool_call: true, limit: { context: 128_000, output: 8_192 } } };
      const provider = { gw: { npm, options: { baseURL: `${url}/v1`, apiKey: '{env:GW_API_KEY}' }, models } };
      writeFileSync(join(work, 'opencode.json'), JSON.stringify({ provider, permission: 'allow', share: 'disabled' }));
      return {
        args: ['run', '-m', `gw/${MODEL}`, PROMPT],
        env: { GW_API_KEY: KEY, OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1' },
      };
    },
  };
}

const SETUPS: readonly Setup[] = [
  codex('Codex 0.169.0 over SSE', 'codex', undefined),
  codex('Codex 0.169.0 over WebSocket v2', 'codex', { version: 'v2', turns: 4 }),
  codex('Codex 0.104.0 over WebSocket v1', 'codex-v1', { version: 'v1', turns: 3 }, '--enable', 'responses_websockets'),
  pi('openai-completions'),
  pi('openai-responses'),
  pi('anthropic-messages'),
  claude,
  opencode('@ai-sdk/openai-compatible'),
  opencode('@ai-sdk/openai'),
  opencode('@ai-sdk/anthropic'),
];

const missing = ({ agent: name }: Setup): string | false => {
  const agent = AGENTS.get(name);
  return agent !== undefined && isInstalled(ROOT, agent)
    ? false
    : `${name} is not installed in ${ROOT} (node test/clients/install.ts)`;
};

const call = ({ name, command }: Tool, text: string): Script => ({
  match: wantsTools,
  reply: {
    pieces: [
      { type: 'reasoning', summary: ['I need the shell.'], raw: 'I need the shell.', opaque: true },
      { type: 'tool', name, arguments: JSON.stringify({ [command]: text, ...(name === 'Bash' ? { description: 'note' } : {}) }) },
    ],
    usage: { input: 100, output: 20 },
  },
});
const finish: Script = {
  match: wantsTools,
  reply: { pieces: [{ type: 'text', text: FINAL }], usage: { input: 120, output: 6 } },
};

/** Some agents ask for titles and the like beside their task; those requests bring no tools and are answered by the demonstration. */
function wantsTools({ body }: { readonly body: unknown }): boolean {
  return typeof body === 'object' && body !== null && 'tools' in body && Array.isArray(body.tools) && body.tools.length > 0;
}

interface Ran {
  readonly code: number | null;
  readonly text: string;
}

async function run(setup: Setup, gateway: TestGateway, work: string): Promise<Ran> {
  const agent = AGENTS.get(setup.agent);
  assert.ok(agent !== undefined);
  const home = mkdtempSync(join(tmpdir(), 'mizu-agent-home-'));
  try {
    const { args, env } = setup.prepare({ home, work, url: gateway.url });
    const child = spawn(commandOf(ROOT, agent), args, {
      cwd: work,
      env: {
        PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH'] ?? ''}`,
        HOME: home,
        NO_COLOR: '1',
        TERM: 'dumb',
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS);
    const chunks: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    const code = await new Promise<number | null>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', resolve);
    });
    clearTimeout(timer);
    return { code, text: Buffer.concat(chunks).toString() };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** What the gateway logged of its WebSockets. A v2 client warms up first, and that is a turn. */
async function socketsOf(gateway: TestGateway): Promise<{ version: string; turns: number }[]> {
  const closed = () => gateway.logLines.filter((line) => line.includes('"websocket closed"'));
  await eventually(() => closed().length > 0, 'the socket is closed');
  return closed().map((line) => {
    const { version, turns }: { version: string; turns: number } = JSON.parse(line);
    return { version, turns };
  });
}

async function withGateway(
  type: (typeof UPSTREAMS)[number],
  body: (gateway: TestGateway, simulator: Simulator, work: string) => Promise<void>,
): Promise<void> {
  const simulator = await startSimulator({ pace: { cut: 'packet' } });
  const work = mkdtempSync(join(tmpdir(), 'mizu-agent-work-'));
  mkdirSync(work, { recursive: true });
  try {
    await using gateway = await testGateway({
      channels: [
        { id: 'one', type, base_url: simulator.url, api_key: 'k', models: [MODEL], options: { lower_custom_tools: true } },
      ],
      models: { [MODEL]: { price: { input: '0.01', output: '0.02' } } },
    });
    await body(gateway, simulator, work);
  } finally {
    await simulator.close();
    rmSync(work, { recursive: true, force: true });
  }
}

function print(title: string, { text }: Ran, simulator: Simulator): void {
  console.log(`\n==== ${title} (${simulator.requests.length} upstream requests) ====\n${text.slice(0, 4_000)}\n====`);
}

for (const setup of SETUPS) {
  for (const type of UPSTREAMS) {
    test(`F27: ${setup.title}, upstream ${type}: two tool turns and an answer`, { skip: missing(setup) }, async () => {
      await withGateway(type, async (gateway, simulator, work) => {
        simulator.enqueue(
          call(setup.tool, 'echo first-$((40+2)) > note.txt && echo written'),
          call(setup.tool, 'cat note.txt'),
          finish,
        );
        const ran = await run(setup, gateway, work);
        print(`${setup.title} over ${type}`, ran, simulator);
        assert.equal(ran.code, 0, ran.text);
        assert.ok(ran.text.includes(FINAL), 'the answer reached the user');
        assert.equal(readFileSync(join(work, 'note.txt'), 'utf8'), 'first-42\n', 'the tool ran');
        const asked = simulator.requests.filter(wantsTools);
        assert.equal(asked.length, 3);
        for (const result of ['written', 'first-42'])
          assert.ok(asked[2]?.text.includes(result), 'both results reached the model');
        assert.ok(!asked.some(({ text }) => text.includes('mz2.')), 'no envelope left the gateway');
        for (const entry of gateway.store.settled) assert.equal(entry.status, 'success', entry.errorText ?? 'it failed');
        if (setup.socket !== undefined) assert.deepEqual(await socketsOf(gateway), [setup.socket], 'all turns on one socket');
      });
    });
  }
}

for (const setup of SETUPS.filter(({ retries }) => retries)) {
  for (const type of UPSTREAMS) {
    test(`F27: ${setup.title}, upstream ${type}: an upstream that dies in mid-turn is retried by the agent`, {
      skip: missing(setup),
    }, async () => {
      await withGateway(type, async (gateway, simulator, work) => {
        simulator.enqueue(
          call(setup.tool, 'echo first-$((40+2)) > note.txt && cat note.txt'),
          { ...finish, faults: [{ type: 'cut', at: 3 }], pace: { cut: 'event', ms: 5 } },
          finish,
        );
        const ran = await run(setup, gateway, work);
        print(`${setup.title} over ${type}, cut in mid-turn`, ran, simulator);
        assert.equal(ran.code, 0, ran.text);
        assert.ok(ran.text.includes(FINAL), 'the answer reached the user');
        assert.equal(
          gateway.store.settled.filter(({ status }) => status === 'error').length,
          1,
          'the broken turn is told as one',
        );
      });
    });
  }
}
