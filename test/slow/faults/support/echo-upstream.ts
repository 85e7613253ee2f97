/**
 * A responses upstream that shows what it was asked in every response object, as the vendor does: instructions and tools. It is
 * asked over HTTP or a WebSocket, and can be steered there. It also makes pictures of five megabytes, embeddings, and answers with their probabilities.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';

const ITEM = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'yes', annotations: [] }],
};
const USAGE = {
  input_tokens: 5,
  output_tokens: 5,
  total_tokens: 10,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens_details: { reasoning_tokens: 0 },
};
const COMPACTION = {
  id: 'resp_1',
  object: 'response.compaction',
  created_at: 1,
  output: [{ id: 'cmp_1', type: 'compaction', encrypted_content: 'x' }],
  usage: USAGE,
};

const VECTOR = Array.from({ length: 1_536 }, (_, at) => Math.sin(at) / 50);

/** The largest that the vendor's models make, in full precision: 67 MB for 2,048 inputs. */
function embeddingsOf(input: readonly string[]): object {
  const data = input.map((_, index) => ({ object: 'embedding', index, embedding: VECTOR }));
  return { object: 'list', model: 'm', data, usage: { prompt_tokens: 5, total_tokens: 5 } };
}

const TOKENS = 20_000;
const ALTERNATIVES = 20;

/** What a long answer with all the probabilities that may be asked for comes to: 22 MB. */
function scoredAnswer(): object {
  const token = (at: number) => ({ token: `w${at} `, logprob: -0.123456, bytes: [1, 2, 3] });
  const content = Array.from({ length: TOKENS }, (_, at) => ({
    ...token(at),
    top_logprobs: Array.from({ length: ALTERNATIVES }, (_, other) => token(other)),
  }));
  const message = { role: 'assistant', content: content.map((one) => one.token).join('') };
  const usage = { prompt_tokens: 5, completion_tokens: TOKENS, total_tokens: TOKENS + 5 };
  return {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, finish_reason: 'stop', message, logprobs: { content } }],
    usage,
  };
}

/** A large picture, as an image endpoint answers with it. */
const PICTURE = JSON.stringify({
  created: 1,
  data: [{ b64_json: 'iVBORw0KGgoAAAAN'.repeat(320 * 1024) }],
  usage: { input_tokens: 5, output_tokens: 5, total_tokens: 10 },
});

interface Asked {
  readonly stream?: boolean;
  readonly instructions?: string;
  readonly tools?: readonly object[];
  readonly input?: unknown;
}

function responseTo({ instructions = '', tools = [] }: Asked, status: 'in_progress' | 'completed'): object {
  const done = status === 'completed' ? { output: [ITEM], usage: USAGE } : { output: [] };
  return { id: 'resp_1', object: 'response', created_at: 1, status, model: 'm', instructions, tools, ...done };
}

function eventsOf(asked: Asked): readonly object[] {
  const part = { output_index: 0, item_id: 'msg_1', content_index: 0 };
  return [
    { type: 'response.created', response: responseTo(asked, 'in_progress') },
    { type: 'response.in_progress', response: responseTo(asked, 'in_progress') },
    { type: 'response.output_item.added', output_index: 0, item: { ...ITEM, status: 'in_progress', content: [] } },
    { type: 'response.content_part.added', ...part, part: { type: 'output_text', text: '', annotations: [] } },
    { type: 'response.output_text.delta', ...part, delta: 'yes' },
    { type: 'response.output_text.done', ...part, text: 'yes' },
    { type: 'response.content_part.done', ...part, part: ITEM.content[0] },
    { type: 'response.output_item.done', output_index: 0, item: ITEM },
    { type: 'response.completed', response: responseTo(asked, 'completed') },
  ];
}

export interface EchoManners {
  /** It leaves out what was streamed where it repeats it: each large event has to be edited. */
  readonly isSloppy?: boolean;
  /** It breaks off behind the first words. */
  readonly breaksOff?: boolean;
  /** Over a WebSocket: its first response goes on once it has accepted so many steers, and it answers them with a response of its own. */
  readonly steers?: number;
}

function sloppy(event: object): object {
  if (!('response' in event)) return event;
  const response = event.response as { readonly output: readonly object[] };
  return { ...event, response: { ...response, output: response.output.map((item) => ({ ...item, content: [] })) } };
}

/** The same over WebSockets: each `response.create` is answered in messages. */
function speakOverSockets(server: Server, { isSloppy = false, steers = 0 }: EchoManners): void {
  const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  server.on('upgrade', (request, socket, head) =>
    sockets.handleUpgrade(request, socket, head, (ws) => converse(ws, isSloppy, steers)),
  );
}

interface SocketEvent extends Asked {
  readonly type: string;
}

function converse(ws: WebSocket, isSloppy: boolean, steers: number): void {
  let accepted = 0;
  let responses = 0;
  const send = (event: object): void => ws.send(JSON.stringify(event));
  const answer = (asked: Asked, from = 0, to?: number): void => {
    for (const event of eventsOf(asked).slice(from, to)) {
      const text = JSON.stringify(isSloppy ? sloppy(event) : event);
      ws.send(text.replace('"id":"resp_1"', `"id":"resp_${responses}"`));
    }
  };
  let asked: Asked = {};
  ws.on('message', (data) => {
    const event = JSON.parse(String(data)) as SocketEvent;
    if (event.type === 'response.create') {
      asked = event;
      responses += 1;
      answer(asked, 0, responses === 1 && steers > 0 ? 5 : undefined);
      return;
    }
    accepted += 1;
    const steer = { id: `steer_${accepted}`, previous_response_id: `resp_${responses}`, input: event.input };
    send({ type: 'response.steer.accepted', steer });
    if (accepted < steers) return;
    answer(asked, 5);
    responses += 1;
    answer({});
  });
}

export async function startEchoUpstream(manners: EchoManners = {}): Promise<{
  readonly url: string;
  close(): void;
}> {
  const { isSloppy = false, breaksOff = false } = manners;
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const asked = JSON.parse(Buffer.concat(chunks).toString()) as Asked;
    if (incoming.url?.includes('/images/') === true) {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(PICTURE);
      return;
    }
    if (incoming.url?.endsWith('/embeddings') === true) {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(embeddingsOf(asked.input as readonly string[])));
      return;
    }
    if (incoming.url?.endsWith('/chat/completions') === true) {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(scoredAnswer()));
      return;
    }
    if (asked.stream === true) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const [at, event] of eventsOf(asked).entries()) {
        if (breaksOff && at === 5) break;
        response.write(`data: ${JSON.stringify({ ...(isSloppy ? sloppy(event) : event), sequence_number: at })}\n\n`);
      }
      if (breaksOff) response.write('', () => response.destroy());
      else response.end();
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(incoming.url?.endsWith('/compact') === true ? COMPACTION : responseTo(asked, 'completed')));
  });
  speakOverSockets(server, manners);
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
