/** A LangChain agent with one tool, as its documentation builds one. Arguments: chat, responses or messages; the prompt. */
import { execSync } from 'node:child_process';
import { ChatAnthropic } from '@langchain/anthropic';
import { ChatOpenAI } from '@langchain/openai';
import { createAgent, tool } from 'langchain';

const [api, prompt] = process.argv.slice(2);
const { GW_URL: url, GW_API_KEY: apiKey, GW_MODEL: model } = process.env;

const llm =
  api === 'messages'
    ? new ChatAnthropic({ apiKey, model, anthropicApiUrl: url, maxTokens: 1024, maxRetries: 0 })
    : new ChatOpenAI({
        apiKey,
        model,
        configuration: { baseURL: `${url}/v1` },
        useResponsesApi: api === 'responses',
        maxRetries: 0,
      });

const bash = tool(
  ({ command }) => {
    const output = execSync(command, { encoding: 'utf8' });
    console.log(`$ ${command}\n${output}`);
    return output;
  },
  {
    name: 'bash',
    description: 'Runs a shell command.',
    schema: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
  },
);

const agent = createAgent({ model: llm, tools: [bash] });
const stream = await agent.stream({ messages: [{ role: 'user', content: prompt }] }, { streamMode: 'messages' });
for await (const [message] of stream) if (message.getType() === 'ai') process.stdout.write(message.text);
console.log();
