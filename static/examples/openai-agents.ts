import { Agent, OpenAIResponsesModel, run, setTracingDisabled } from '@openai/agents';
import OpenAI from 'openai';

setTracingDisabled(true);
const client = new OpenAI({ apiKey: process.env.MIZU_API_KEY, baseURL: '__BASE_URL__/v1' });
const agent = new Agent({ name: 'Pilot', model: new OpenAIResponsesModel(client, '__MODEL__') });
console.log((await run(agent, 'Say hello')).finalOutput);
