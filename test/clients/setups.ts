/** How each agent is pointed at a gateway and given its task, headless. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { KEY } from '../support/test-gateway.ts';

export const MODEL = 'agent-model';
const PROMPT = 'Write the answer into note.txt, read it back, and tell me what it says.';

export interface Tool {
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

export interface Setup {
  readonly title: string;
  readonly agent: string;
  readonly tool: Tool;
  /** Writes the configuration; gives the arguments and the environment. */
  prepare(place: Place): { readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> };
  /** The one socket that the agent is to use for everything. */
  readonly socket?: { readonly version: string; readonly turns: number };
  /** What the agent makes of a turn that breaks off: it asks again, tells its user, or does not look (it knows no `response.failed`). */
  readonly broken: 'retried' | 'told' | 'missed';
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
    broken: 'retried',
    prepare(place) {
      codexConfig(place, socket !== undefined);
      return { args: codexArguments(place.work, ...more), env: { CODEX_HOME: place.home, GW_API_KEY: KEY } };
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
  broken: 'retried',
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
    tool: OWN_TOOL,
    broken: npm === '@ai-sdk/openai-compatible' ? 'retried' : 'told',
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

function langchain(api: 'chat' | 'responses' | 'messages'): Setup {
  return {
    title: `LangChain over ${api}`,
    agent: 'langchain',
    tool: OWN_TOOL,
    broken: api === 'responses' ? 'missed' : 'told',
    prepare: ({ url }) => ({ args: [api, PROMPT], env: { GW_URL: url, GW_API_KEY: KEY, GW_MODEL: MODEL } }),
  };
}

function openaiAgents(api: 'chat' | 'responses' | 'websocket'): Setup {
  return {
    title: `OpenAI Agents SDK over ${api}`,
    agent: 'openai-agents',
    tool: OWN_TOOL,
    ...(api === 'websocket' ? { socket: { version: 'unannounced', turns: 3 } } : {}),
    broken: 'told',
    prepare: ({ url }) => ({ args: [api, PROMPT], env: { GW_URL: url, GW_API_KEY: KEY, GW_MODEL: MODEL } }),
  };
}

function copilot(title: string, base: '' | '/v1', env: Readonly<Record<string, string>>, socket?: Setup['socket']): Setup {
  return {
    title: `Copilot CLI over ${title}`,
    agent: 'copilot',
    tool: OWN_TOOL,
    ...(socket === undefined ? {} : { socket }),
    broken: 'retried',
    prepare: ({ url }) => ({
      args: ['-p', PROMPT, '--allow-all-tools'],
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
  opencode('@ai-sdk/openai-compatible'),
  opencode('@ai-sdk/openai'),
  opencode('@ai-sdk/anthropic'),
  copilot('chat', '/v1', {}),
  copilot('responses', '/v1', { COPILOT_PROVIDER_WIRE_API: 'responses' }),
  copilot(
    'WebSocket',
    '/v1',
    { COPILOT_PROVIDER_WIRE_API: 'responses', COPILOT_PROVIDER_TRANSPORT: 'websockets' },
    { version: 'unannounced', turns: 3 },
  ),
  copilot('messages', '', { COPILOT_PROVIDER_TYPE: 'anthropic' }),
];
