/** An agent of the OpenAI Agents SDK with one tool, as its documentation builds one. Arguments: chat, responses or websocket; the prompt. */
import { execSync } from 'node:child_process';
import {
  Agent,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  OpenAIResponsesWSModel,
  run,
  setTracingDisabled,
  tool,
} from '@openai/agents';
import OpenAI from 'openai';

const [api, prompt] = process.argv.slice(2);
const { GW_URL: url, GW_API_KEY: apiKey, GW_MODEL: name } = process.env;
setTracingDisabled(true);

const client = new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 });
const models = { chat: OpenAIChatCompletionsModel, responses: OpenAIResponsesModel, websocket: OpenAIResponsesWSModel };
const model = new models[api](client, name);

const bash = tool({
  name: 'bash',
  description: 'Runs a shell command.',
  strict: false,
  parameters: {
    type: 'object',
    properties: { command: { type: 'string' } },
    required: ['command'],
    additionalProperties: true,
  },
  execute({ command }) {
    const output = execSync(command, { encoding: 'utf8' });
    console.log(`$ ${command}\n${output}`);
    return output;
  },
});

const answer = await run(new Agent({ name: 'writer', model, tools: [bash] }), prompt, { stream: true });
for await (const text of answer.toTextStream()) process.stdout.write(text);
await answer.completed;
console.log();
await model.close?.();
