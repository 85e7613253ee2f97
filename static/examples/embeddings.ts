import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '__BASE_URL__/v1', apiKey: process.env.MIZU_API_KEY });

const result = await client.embeddings.create({ model: '__MODEL__', input: ['high water', 'low water'] });
for (const { index, embedding } of result.data) console.log(index, embedding.length);
