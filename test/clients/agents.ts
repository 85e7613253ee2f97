/** The agents that are driven as tests: which versions, how they are started once they are installed. */
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Agent {
  readonly name: string;
  /** For npm, or for pip where it is started by Python; exact. */
  readonly specs: readonly string[];
  /**
   * The command beneath its folder; or a script of ours, which is run from there so that it finds the packages; or one for its
   * Python.
   */
  readonly start: { readonly bin: string } | { readonly script: string } | { readonly python: string };
  /** Installed when none is named. */
  readonly isDefault: boolean;
}

const agent = (name: string, spec: string, bin: string, isDefault: boolean): Agent => ({
  name,
  specs: [spec],
  start: { bin: `node_modules/.bin/${bin}` },
  isDefault,
});
const kit = (name: string, ...specs: string[]): Agent => ({ name, specs, start: { script: `${name}.mjs` }, isDefault: true });
/** In an environment of its own. */
const python = (name: string, script: string, ...specs: string[]): Agent => ({
  name: `python-${name}`,
  specs,
  start: { python: script },
  isDefault: false,
});

const ALL: readonly Agent[] = [
  agent('codex', '@openai/codex@0.169.0', 'codex', true),
  // The last line of clients that speak WebSocket v1.
  agent('codex-v1', '@openai/codex@0.104.0', 'codex', true),
  agent('pi', '@mariozechner/pi-coding-agent@0.73.1', 'pi', true),
  kit(
    'langchain',
    'langchain@1.5.14',
    '@langchain/core@1.2.13',
    // Later ones want a core that is not published; npm searches for it without end.
    '@langchain/langgraph@1.4.13',
    '@langchain/openai@1.6.0',
    '@langchain/anthropic@1.5.11',
  ),
  kit('openai-agents', '@openai/agents@0.20.0', 'openai@7.55.0', 'zod@4.6.7'),
  kit('ai-sdk', 'ai@7.0.173', '@ai-sdk/openai@4.0.118', '@ai-sdk/anthropic@4.0.105'),
  kit('mastra', '@mastra/core@1.71.0', '@ai-sdk/openai@4.0.118', '@ai-sdk/anthropic@4.0.105', 'zod@4.6.7'),
  { ...kit('claude-agent-sdk', '@anthropic-ai/claude-agent-sdk@0.3.332', 'zod@4.6.7'), isDefault: false },
  agent('qwen', '@qwen-code/qwen-code@0.24.4', 'qwen', false),
  agent('cline', 'cline@3.0.65', 'cline', false),
  agent('continue', '@continuedev/cli@1.5.47', 'cn', false),
  agent('claude', '@anthropic-ai/claude-code@2.1.329', 'claude', false),
  agent('opencode', 'opencode-ai@1.18.33', 'opencode', false),
  agent('copilot', '@github/copilot@1.0.102', 'copilot', false),
  python('openai', 'openai_client.py', 'openai==3.22.1'),
  python('anthropic', 'anthropic_client.py', 'anthropic==1.13.0'),
  python('langgraph', 'langgraph_agent.py', 'langchain-core==1.6.5', 'langchain-openai==1.6.6', 'langgraph==1.2.12'),
];

export const AGENTS: ReadonlyMap<string, Agent> = new Map(ALL.map((each) => [each.name, each]));

/** The command and its first arguments. */
export function commandOf(root: string, { name, start }: Agent): readonly [string, ...string[]] {
  if ('bin' in start) return [join(root, name, start.bin)];
  if ('python' in start) {
    return [join(root, name, 'bin/python'), fileURLToPath(new URL(`scripts/python/${start.python}`, import.meta.url))];
  }
  const script = join(root, name, basename(start.script));
  copyFileSync(new URL(`scripts/${start.script}`, import.meta.url), script);
  return [process.execPath, script];
}

export function isInstalled(root: string, { name, specs, start }: Agent): boolean {
  if ('bin' in start) return existsSync(join(root, name, start.bin));
  if ('python' in start) {
    const note = pipNote(root, name);
    return existsSync(note) && readFileSync(note, 'utf8') === specs.join('\n');
  }
  return specs.every((spec) => existsSync(join(root, name, 'node_modules', spec.replace(/@[^@]*$/, ''), 'package.json')));
}

/** Holds what pip has installed, and is written when it has. */
export const pipNote = (root: string, name: string): string => join(root, name, 'installed.txt');
