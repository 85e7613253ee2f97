import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '__BASE_URL__/v1', apiKey: process.env.MIZU_API_KEY });

const completion = await client.completions.create({ model: '__MODEL__', prompt: 'The tide comes in', max_tokens: 64 });
console.log(completion.choices[0]?.text);
