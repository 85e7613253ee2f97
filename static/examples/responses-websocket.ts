import OpenAI from 'openai';
import { ResponsesWS } from 'openai/resources/responses/ws';

const client = new OpenAI({ baseURL: '__BASE_URL__/v1', apiKey: process.env.MIZU_API_KEY });
const socket = new ResponsesWS(client);

socket.on('response.output_text.delta', (event) => process.stdout.write(event.delta));
socket.on('response.completed', () => socket.close());
socket.on('response.failed', () => socket.close());
socket.on('error', (error) => {
  console.error(error);
  socket.close();
});
socket.send({ type: 'response.create', model: '__MODEL__', input: 'Why is the sea blue?' });
