import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '__BASE_URL__/v1', apiKey: process.env.MIZU_API_KEY });

const stream = await client.chat.completions.create({
  model: '__MODEL__',
  messages: [{ role: 'user', content: 'Why is the sea blue?' }],
  stream: true,
});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? '');
