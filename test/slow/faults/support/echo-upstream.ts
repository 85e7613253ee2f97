/**
 * A responses upstream that shows what it was asked in every response object, as the vendor does: instructions and tools.
 * It also makes pictures of five megabytes.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

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
}

function sloppy(event: object): object {
  if (!('response' in event)) return event;
  const response = event.response as { readonly output: readonly object[] };
  return { ...event, response: { ...response, output: response.output.map((item) => ({ ...item, content: [] })) } };
}

export async function startEchoUpstream({ isSloppy = false, breaksOff = false }: EchoManners = {}): Promise<{
  readonly url: string;
  close(): void;
}> {
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const asked = JSON.parse(Buffer.concat(chunks).toString()) as Asked;
    if (incoming.url?.includes('/images/') === true) {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(PICTURE);
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
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
