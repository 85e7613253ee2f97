/** How each agent is pointed at a gateway and given its task, headless. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { KEY } from '../support/test-gateway.ts';

export const MODEL = 'agent-model';

export interface Tool {
  readonly name: string;
  /** The member that holds a shell command. */
  readonly command: string;
  /** Other members that it demands. */
  readonly more?: Readonly<Record<string, unknown>>;
}

interface Place {
  readonly home: string;
  readonly work: string;
  /** Without `/v1`. */
  readonly url: string;
}

/** What is said to the agent, and whether it goes on with its last conversation in the same home. */
export interface Task extends Place {
  readonly prompt: string;
  readonly isResumed: boolean;
}

export interface Setup {
  readonly title: string;
  readonly agent: string;
  readonly tool: Tool;
  /** Writes the configuration; gives the arguments and the environment. */
  prepare(task: Task): { readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> };
  /** The one socket that the agent is to use for everything. */
  readonly socket?: { readonly version: string; readonly turns: number };
  /** It can go on with a conversation that another process of it began. */
  readonly resumes?: true;
  /** It can ask for an answer in a schema and read it. */
  readonly parses?: true;
  /** It compacts a conversation whose usage comes near the end of its window, by a request without tools. */
  readonly compacts?: true;
  /** The agent's last message in what it printed; by default anywhere in it. */
  lastMessage?(text: string): string;
  /** How often it asks again for a turn that its upstream refuses, also where no gateway stands between them. */
  readonly asksAgain?: number;
  /**
   * What the agent makes of a turn that breaks off: it asks again, tells its user, or does not look (it knows no
   * `response.failed`).
   */
  readonly broken: 'retried' | 'told' | 'missed';
}

function codexConfig({ home, url }: Place, websockets: boolean): void {
  writeFileSync(
    join(home, 'config.toml'),
    `model = "${MODEL}"
model_provider = "gw"
approval_policy = "never"
model_context_window = 128000
model_auto_compact_token_limit = 100000
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

function codexArguments({ work, prompt, isResumed }: Task, ...more: string[]): string[] {
  const at = ['exec', '--skip-git-repo-check', '-C', work, ...more];
  return isResumed ? [...at, 'resume', '--last', prompt] : [...at, prompt];
}
const SHELL: Tool = { name: 'exec_command', command: 'cmd' };

function codex(title: string, agent: string, socket: Setup['socket'], ...more: string[]): Setup {
  return {
    title,
    agent,
    tool: SHELL,
    ...(socket === undefined ? {} : { socket }),
    broken: 'retried',
    resumes: true,
    compacts: true,
    prepare(place) {
      codexConfig(place, socket !== undefined);
      return { args: codexArguments(place, ...more), env: { CODEX_HOME: place.home, GW_API_KEY: KEY } };
    },
  };
}

const OWN_TOOL: Tool = { name: 'bash', command: 'command' };

function pi(api: 'openai-completions' | 'openai-responses' | 'anthropic-messages'): Setup {
  return {
    title: `pi over ${api}`,
    agent: 'pi',
    tool: OWN_TOOL,
    broken: 'told',
    resumes: true,
    prepare({ home, url, prompt, isResumed }) {
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
        args: ['-p', ...(isResumed ? ['-c'] : []), '--provider', 'gw', '--model', MODEL, prompt],
        env: { PI_CODING_AGENT_DIR: home, PI_OFFLINE: '1', PI_TELEMETRY: '0' },
      };
    },
  };
}

const CLAUDE_TOOL: Tool = { name: 'Bash', command: 'command', more: { description: 'note' } };

/** The SDKs of Claude Code give this line to their users as the whole result. */
function claudeResult(text: string): string {
  const line =
    text.split('\n').findLast((each) => each.startsWith('{"type":"result"') || /^\{.*"type":"result"/.test(each)) ?? '{}';
  const { result = '' }: { result?: string } = JSON.parse(line);
  return result;
}

/** It leaves out one beta after the other, whatever the refusal says. */
const CLAUDE_ASKS_AGAIN = 5;

const CLAUDE_ENV = {
  ANTHROPIC_API_KEY: KEY,
  ANTHROPIC_MODEL: MODEL,
  ANTHROPIC_SMALL_FAST_MODEL: MODEL,
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  DISABLE_AUTOUPDATER: '1',
  IS_SANDBOX: '1',
  CLAUDE_CODE_MAX_RETRIES: '0',
};

const claude: Setup = {
  title: 'Claude Code',
  agent: 'claude',
  tool: CLAUDE_TOOL,
  broken: 'retried',
  asksAgain: CLAUDE_ASKS_AGAIN,
  resumes: true,
  lastMessage: claudeResult,
  prepare: ({ url, prompt, isResumed }) => ({
    args: [...(isResumed ? ['-c'] : []), '-p', prompt, '--output-format', 'stream-json', '--verbose', '--allowedTools', 'Bash'],
    env: { ANTHROPIC_BASE_URL: url, ...CLAUDE_ENV },
  }),
};

const claudeSdk: Setup = {
  title: 'Claude Agent SDK',
  agent: 'claude-agent-sdk',
  tool: CLAUDE_TOOL,
  broken: 'retried',
  asksAgain: CLAUDE_ASKS_AGAIN,
  resumes: true,
  lastMessage: claudeResult,
  prepare: ({ url, prompt, isResumed }) => ({
    args: [prompt, ...(isResumed ? ['continue'] : [])],
    env: { ANTHROPIC_BASE_URL: url, ...CLAUDE_ENV },
  }),
};

function opencode(npm: '@ai-sdk/openai-compatible' | '@ai-sdk/openai' | '@ai-sdk/anthropic'): Setup {
  return {
    title: `opencode with ${npm}`,
    agent: 'opencode',
    tool: OWN_TOOL,
    broken: npm === '@ai-sdk/openai-compatible' ? 'retried' : 'told',
    resumes: true,
    prepare({ work, url, prompt, isResumed }) {
      const models = { [MODEL]: { tool_call: true, limit: { context: 128_000, output: 8_192 } } };
      const provider = { gw: { npm, options: { baseURL: `${url}/v1`, apiKey: '{env:GW_API_KEY}' }, models } };
      writeFileSync(join(work, 'opencode.json'), JSON.stringify({ provider, permission: 'allow', share: 'disabled' }));
      return {
        args: ['run', ...(isResumed ? ['-c'] : []), '-m', `gw/${MODEL}`, prompt],
        env: { GW_API_KEY: KEY, OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1' },
      };
    },
  };
}

function langchain(api: 'chat' | 'responses' | 'messages'): Setup {
  return {
    title: `LangChain over ${api}`,
    agent: 'langchain',
    tool: OWN_TOOL,
    broken: api === 'responses' ? 'missed' : 'told',
    prepare: ({ url, prompt }) => ({ args: [api, prompt], env: { GW_URL: url, GW_API_KEY: KEY, GW_MODEL: MODEL } }),
  };
}

function openaiAgents(api: 'chat' | 'responses' | 'websocket'): Setup {
  return {
    title: `OpenAI Agents SDK over ${api}`,
    agent: 'openai-agents',
    tool: OWN_TOOL,
    ...(api === 'websocket' ? { socket: { version: 'unannounced', turns: 3 } } : {}),
    broken: 'told',
    prepare: ({ url, prompt }) => ({ args: [api, prompt], env: { GW_URL: url, GW_API_KEY: KEY, GW_MODEL: MODEL } }),
  };
}

function copilot(title: string, base: '' | '/v1', env: Readonly<Record<string, string>>, more: Partial<Setup> = {}): Setup {
  return {
    title: `Copilot CLI over ${title}`,
    agent: 'copilot',
    tool: OWN_TOOL,
    ...more,
    broken: 'retried',
    resumes: true,
    prepare: ({ url, prompt, isResumed }) => ({
      args: [...(isResumed ? ['--continue'] : []), '-p', prompt, '--allow-all-tools'],
      env: {
        COPILOT_OFFLINE: 'true',
        COPILOT_AUTO_UPDATE: 'false',
        COPILOT_PROVIDER_BASE_URL: `${url}${base}`,
        COPILOT_PROVIDER_API_KEY: KEY,
        COPILOT_MODEL: MODEL,
        ...env,
      },
    }),
  };
}

const python = (title: string, agent: string, api: 'chat' | 'responses' | 'messages'): Setup => ({
  ...kit(`${title} for Python`, `python-${agent}`, api),
  // The client reads a `response.failed` as an answer like others.
  broken: api === 'responses' ? 'missed' : 'told',
  parses: true,
});

const kit = (title: string, agent: string, api: 'chat' | 'responses' | 'messages'): Setup => ({
  title: `${title} over ${api}`,
  agent,
  tool: OWN_TOOL,
  broken: 'told',
  prepare: ({ url, prompt }) => ({ args: [api, prompt], env: { GW_URL: url, GW_API_KEY: KEY, GW_MODEL: MODEL } }),
});

const qwen: Setup = {
  title: 'Qwen Code',
  agent: 'qwen',
  tool: { name: 'run_shell_command', command: 'command', more: { is_background: false } },
  broken: 'retried',
  resumes: true,
  prepare: ({ url, prompt, isResumed }) => ({
    args: ['--auth-type', 'openai', '-y', ...(isResumed ? ['-c'] : []), '-p', prompt],
    env: { OPENAI_API_KEY: KEY, OPENAI_BASE_URL: `${url}/v1`, OPENAI_MODEL: MODEL },
  }),
};

const cline: Setup = {
  title: 'Cline',
  agent: 'cline',
  tool: { name: 'run_commands', command: 'commands' },
  broken: 'told',
  prepare({ home, url, prompt }) {
    const settings = { provider: 'openai-compatible', apiKey: KEY, model: MODEL, baseUrl: `${url}/v1` };
    const entry = { settings, updatedAt: '2026-11-01T00:00:00.000Z', tokenSource: 'manual' };
    const file = { version: 1, lastUsedProvider: 'openai-compatible', modes: {}, providers: { 'openai-compatible': entry } };
    const folder = join(home, '.cline/data/settings');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'providers.json'), JSON.stringify(file));
    return { args: ['-P', 'openai-compatible', '-m', MODEL, prompt], env: {} };
  },
};

const continueCli: Setup = {
  title: 'Continue',
  agent: 'continue',
  tool: { name: 'Bash', command: 'command' },
  broken: 'retried',
  prepare({ home, url, prompt }) {
    const file = join(home, 'config.yaml');
    const model = {
      name: MODEL,
      provider: 'openai',
      model: MODEL,
      apiBase: `${url}/v1`,
      apiKey: KEY,
      roles: ['chat'],
      capabilities: ['tool_use'],
    };
    writeFileSync(file, JSON.stringify({ name: 'gateway', version: '0.0.1', schema: 'v1', models: [model] }));
    return { args: ['-p', prompt, '--auto', '--config', file], env: { CONTINUE_TELEMETRY_ENABLED: '0' } };
  },
};

export const SETUPS: readonly Setup[] = [
  codex('Codex 0.169.0 over SSE', 'codex', undefined),
  codex('Codex 0.169.0 over WebSocket v2', 'codex', { version: 'v2', turns: 4 }),
  codex('Codex 0.104.0 over WebSocket v1', 'codex-v1', { version: 'v1', turns: 3 }, '--enable', 'responses_websockets'),
  pi('openai-completions'),
  pi('openai-responses'),
  pi('anthropic-messages'),
  langchain('chat'),
  langchain('responses'),
  langchain('messages'),
  openaiAgents('chat'),
  openaiAgents('responses'),
  openaiAgents('websocket'),
  claude,
  claudeSdk,
  ...(['chat', 'responses', 'messages'] as const).map((api) => kit('AI SDK', 'ai-sdk', api)),
  ...(['chat', 'responses', 'messages'] as const).map((api) => kit('Mastra', 'mastra', api)),
  python('OpenAI', 'openai', 'chat'),
  python('OpenAI', 'openai', 'responses'),
  python('Anthropic', 'anthropic', 'messages'),
  python('LangGraph', 'langgraph', 'chat'),
  python('LangGraph', 'langgraph', 'responses'),
  qwen,
  cline,
  continueCli,
  opencode('@ai-sdk/openai-compatible'),
  opencode('@ai-sdk/openai'),
  opencode('@ai-sdk/anthropic'),
  copilot('chat', '/v1', {}),
  copilot('responses', '/v1', { COPILOT_PROVIDER_WIRE_API: 'responses' }),
  copilot(
    'WebSocket',
    '/v1',
    { COPILOT_PROVIDER_WIRE_API: 'responses', COPILOT_PROVIDER_TRANSPORT: 'websockets' },
    // On a socket it reads the code of an error and not its status. It knows `invalid_request_error` and `invalid_prompt`; any
    // other code, and none at all, it takes for the server's fault, also where no gateway stands between them.
    { socket: { version: 'unannounced', turns: 3 }, asksAgain: 5 },
  ),
  copilot('messages', '', { COPILOT_PROVIDER_TYPE: 'anthropic' }),
];
