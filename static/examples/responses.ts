import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '__BASE_URL__/v1', apiKey: process.env.MIZU_API_KEY });

const stream = await client.responses.create({
  model: '__MODEL__',
  input: 'Why is the sea blue?',
  stream: true,
});
for await (const event of stream) {
  if (event.type === 'response.output_text.delta') process.stdout.write(event.delta);
  else if (event.type === 'response.failed') throw new Error(event.response.error?.message);
}
