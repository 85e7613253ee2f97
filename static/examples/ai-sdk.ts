import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { streamText } from 'ai';

const apiKey = process.env.MIZU_API_KEY;
const openai = createOpenAI({ apiKey, baseURL: '__BASE_URL__/v1' });
const anthropic = createAnthropic({ apiKey, baseURL: '__BASE_URL__/v1' });

// Responses, chat completions, messages:
for (const model of [openai('__MODEL__'), openai.chat('__MODEL__'), anthropic('__MODEL__')]) {
  const { textStream } = streamText({ model, prompt: 'Say hello' });
  for await (const text of textStream) process.stdout.write(text);
}
