/** A loop of the AI SDK with one tool, as its documentation builds one. Arguments: chat, responses or messages; the prompt. */
import { execSync } from 'node:child_process';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { jsonSchema, stepCountIs, streamText, tool } from 'ai';

const [api, prompt] = process.argv.slice(2);
const { GW_URL: url, GW_API_KEY: apiKey, GW_MODEL: name } = process.env;
const settings = { apiKey, baseURL: `${url}/v1` };
const model = api === 'messages' ? createAnthropic(settings)(name) : createOpenAI(settings)[api](name);

const bash = tool({
  description: 'Runs a shell command.',
  inputSchema: jsonSchema({ type: 'object', properties: { command: { type: 'string' } }, required: ['command'] }),
  execute: ({ command }) => execSync(command, { encoding: 'utf8' }),
});

const answer = streamText({ model, prompt, tools: { bash }, stopWhen: stepCountIs(8), maxRetries: 0, onError: () => undefined });
for await (const part of answer.fullStream) {
  if (part.type === 'error') throw part.error;
  if (part.type === 'text-delta') process.stdout.write(part.text);
}
console.log();
