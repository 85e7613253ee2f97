import { ChatAnthropic } from '@langchain/anthropic';
import { ChatOpenAI } from '@langchain/openai';

const apiKey = process.env.MIZU_API_KEY;
const chat = new ChatOpenAI({ model: '__MODEL__', apiKey, configuration: { baseURL: '__BASE_URL__/v1' } });
const messages = new ChatAnthropic({ model: '__MODEL__', apiKey, anthropicApiUrl: '__BASE_URL__' });
for (const model of [chat, messages]) console.log((await model.invoke('Say hello')).text);
