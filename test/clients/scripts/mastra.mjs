/** A Mastra agent with one tool, as its documentation builds one. Arguments: chat, responses or messages; the prompt. */
import { execSync } from 'node:child_process';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { z } from 'zod';

const [api, prompt] = process.argv.slice(2);
const { GW_URL: url, GW_API_KEY: apiKey, GW_MODEL: name } = process.env;
const settings = { apiKey, baseURL: `${url}/v1` };
const model = api === 'messages' ? createAnthropic(settings)(name) : createOpenAI(settings)[api](name);

const bash = createTool({
  id: 'bash',
  description: 'Runs a shell command.',
  inputSchema: z.object({ command: z.string() }),
  outputSchema: z.string(),
  execute: async (input) => execSync(input.command ?? input.context.command, { encoding: 'utf8' }),
});

const agent = new Agent({
  id: 'writer',
  name: 'writer',
  instructions: 'You write notes.',
  model,
  tools: { bash },
  maxRetries: 0,
});
const answer = await agent.stream(prompt, { maxSteps: 8, modelSettings: { maxRetries: 0 } });
for await (const chunk of answer.fullStream) {
  if (chunk.type === 'error') throw chunk.payload.error;
  if (chunk.type === 'text-delta') process.stdout.write(chunk.payload.text);
}
console.log();
process.exit(0);
