import { createReadStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '__BASE_URL__/v1', apiKey: process.env.MIZU_API_KEY });

const result = await client.images.edit({
  model: '__MODEL__',
  prompt: 'Let the sun rise',
  image: createReadStream('harbour.png'),
});
await writeFile('sunrise.png', Buffer.from(result.data?.[0]?.b64_json ?? '', 'base64'));
