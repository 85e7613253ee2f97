import { writeFile } from 'node:fs/promises';
import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '__BASE_URL__/v1', apiKey: process.env.MIZU_API_KEY });

const result = await client.images.generate({
  model: '__MODEL__',
  prompt: 'A harbour at dawn, woodcut',
  size: '1024x1024',
});
await writeFile('harbour.png', Buffer.from(result.data?.[0]?.b64_json ?? '', 'base64'));
