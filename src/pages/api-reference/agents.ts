/** How the coding agents and libraries are pointed at the gateway, as seen to work. Text uses the placeholders of examples.ts. */
import { BASE_URL, MODEL } from './examples.ts';

/** `where`: a file to write, the shell, or a language. Its text is here, or in a file of `static/examples/`. */
export type AgentSnippet =
  | { readonly where: string; readonly text: string; readonly file?: never }
  | { readonly where: string; readonly file: string; readonly text?: never };

export interface AgentReference {
  readonly id: string;
  readonly title: string;
  readonly protocols: string;
  readonly note?: string;
  readonly snippets: readonly AgentSnippet[];
}

export const AGENTS: readonly AgentReference[] = [
  {
    id: 'codex',
    title: 'Codex',
    protocols: 'responses, over HTTP or WebSocket',
    note: 'Leave out `supports_websockets` to stay with HTTP.',
    snippets: [
      {
        where: '~/.codex/config.toml',
        text: `model = "${MODEL}"
model_provider = "mizu"

[model_providers.mizu]
name = "Mizu"
base_url = "${BASE_URL}/v1"
env_key = "MIZU_API_KEY"
wire_api = "responses"
supports_websockets = true`,
      },
      { where: 'shell', text: 'codex exec --skip-git-repo-check "Say hello"' },
    ],
  },
  {
    id: 'claude-code',
    title: 'Claude Code',
    protocols: 'messages',
    note: 'The base URL has no /v1 here.',
    snippets: [
      {
        where: 'shell',
        text: `export ANTHROPIC_BASE_URL=${BASE_URL}
export ANTHROPIC_AUTH_TOKEN=$MIZU_API_KEY
export ANTHROPIC_MODEL=${MODEL}
claude`,
      },
    ],
  },
  {
    id: 'opencode',
    title: 'opencode',
    protocols: 'chat completions, responses or messages, by provider package',
    note: 'For responses name the package `@ai-sdk/openai`, for messages `@ai-sdk/anthropic`.',
    snippets: [
      {
        where: 'opencode.json',
        text: `{
  "$schema": "https://opencode.ai/config.json",
  "provider": {
    "mizu": {
      "npm": "@ai-sdk/openai-compatible",
      "options": { "baseURL": "${BASE_URL}/v1", "apiKey": "{env:MIZU_API_KEY}" },
      "models": { "${MODEL}": { "tool_call": true } }
    }
  }
}`,
      },
      { where: 'shell', text: `opencode run -m mizu/${MODEL} "Say hello"` },
    ],
  },
  {
    id: 'pi',
    title: 'pi',
    protocols: 'chat completions, responses or messages, by `api`',
    note: 'With `openai-responses` keep the /v1; with `anthropic-messages` leave it out.',
    snippets: [
      {
        where: '~/.pi/agent/models.json',
        text: `{
  "providers": {
    "mizu": {
      "baseUrl": "${BASE_URL}/v1",
      "apiKey": "MIZU_API_KEY",
      "api": "openai-completions",
      "models": [{ "id": "${MODEL}" }]
    }
  }
}`,
      },
      { where: 'shell', text: `pi --provider mizu --model ${MODEL}` },
    ],
  },
  {
    id: 'copilot',
    title: 'GitHub Copilot CLI',
    protocols: 'chat completions, responses or messages',
    note: '`COPILOT_PROVIDER_WIRE_API=responses` chooses responses, with `COPILOT_PROVIDER_TRANSPORT=websockets` over WebSocket. `COPILOT_PROVIDER_TYPE=anthropic` chooses messages and takes the base URL without /v1.',
    snippets: [
      {
        where: 'shell',
        text: `export COPILOT_PROVIDER_BASE_URL=${BASE_URL}/v1
export COPILOT_PROVIDER_API_KEY=$MIZU_API_KEY
export COPILOT_MODEL=${MODEL}
copilot`,
      },
    ],
  },
  {
    id: 'qwen-code',
    title: 'Qwen Code',
    protocols: 'chat completions',
    snippets: [
      {
        where: 'shell',
        text: `export OPENAI_BASE_URL=${BASE_URL}/v1
export OPENAI_API_KEY=$MIZU_API_KEY
export OPENAI_MODEL=${MODEL}
qwen --auth-type openai`,
      },
    ],
  },
  {
    id: 'langchain',
    title: 'LangChain',
    protocols: 'chat completions, responses (`useResponsesApi`) or messages',
    snippets: [
      {
        where: 'TypeScript',
        file: 'langchain.ts',
      },
    ],
  },
  {
    id: 'ai-sdk',
    title: 'AI SDK',
    protocols: 'responses, chat completions or messages, by provider',
    note: 'All three keep the /v1.',
    snippets: [
      {
        where: 'TypeScript',
        file: 'ai-sdk.ts',
      },
    ],
  },
  {
    id: 'openai-agents',
    title: 'OpenAI Agents SDK',
    protocols: 'responses, chat completions, or responses over WebSocket',
    snippets: [
      {
        where: 'TypeScript',
        file: 'openai-agents.ts',
      },
    ],
  },
  {
    id: 'vendor-sdks',
    title: 'OpenAI and Anthropic SDKs',
    protocols: 'by environment alone, in every language',
    snippets: [
      {
        where: 'shell',
        text: `export OPENAI_BASE_URL=${BASE_URL}/v1
export OPENAI_API_KEY=$MIZU_API_KEY
export ANTHROPIC_BASE_URL=${BASE_URL}
export ANTHROPIC_API_KEY=$MIZU_API_KEY`,
      },
    ],
  },
];
