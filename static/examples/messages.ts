import Anthropic from '@anthropic-ai/sdk';

// No /v1 here: this SDK adds it.
const client = new Anthropic({ baseURL: '__BASE_URL__', apiKey: process.env.MIZU_API_KEY });

const stream = client.messages.stream({
  model: '__MODEL__',
  max_tokens: 1024,
  messages: [{ role: 'user', content: 'Why is the sea blue?' }],
});
stream.on('text', (text) => process.stdout.write(text));
await stream.finalMessage();
