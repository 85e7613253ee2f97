/** The coding agents that are driven as tests: which versions, where their commands are once they are installed. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

export interface Agent {
  readonly name: string;
  /** For npm, exact. */
  readonly spec: string;
  /** The command beneath its folder. */
  readonly bin: string;
}

const agent = (name: string, spec: string, bin: string): [string, Agent] => [
  name,
  { name, spec, bin: `node_modules/.bin/${bin}` },
];

export const AGENTS: ReadonlyMap<string, Agent> = new Map([
  agent('codex', '@openai/codex@0.169.0', 'codex'),
  // The last line of clients that speak WebSocket v1.
  agent('codex-v1', '@openai/codex@0.104.0', 'codex'),
  agent('pi', '@mariozechner/pi-coding-agent@0.73.1', 'pi'),
  agent('claude', '@anthropic-ai/claude-code@2.1.329', 'claude'),
  agent('opencode', 'opencode-ai@1.18.33', 'opencode'),
  agent('copilot', '@github/copilot@1.0.102', 'copilot'),
]);

export function commandOf(root: string, { name, bin }: Agent): string {
  return join(root, name, bin);
}

export function isInstalled(root: string, agent: Agent): boolean {
  return existsSync(commandOf(root, agent));
}
