import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '__BASE_URL__/v1', apiKey: process.env.MIZU_API_KEY });

const compacted = await client.responses.compact({
  model: '__MODEL__',
  input: [{ role: 'user', content: 'Why is the sea blue?' }],
});
console.log(compacted.output);
