/**
 * The least that a converting gateway can do on the same stack: a chat-completions upstream for messages clients, text streams
 * alone, and nothing is checked, limited, timed or retried. It bounds from below what any gateway could cost here. Usage:
 * least-gateway.ts UPSTREAM_URL conversion|log|ledger FOLDER, where each of the three does what those before it do.
 */
import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { open } from 'lmdb';
import { destination, pino } from 'pino';
import { Pool } from 'undici';

interface MessagesRequest {
  readonly model: string;
  readonly max_tokens: number;
  readonly messages: readonly { readonly role: string; readonly content: string }[];
}
interface TokenCounts {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
}
interface ChatChunk {
  readonly choices: readonly { readonly delta: { readonly content?: string }; readonly finish_reason: string | null }[];
  readonly usage?: TokenCounts;
}

const [upstreamUrl = '', level = 'ledger', folder = ''] = process.argv.slice(2);
const pool = new Pool(upstreamUrl, { pipelining: 1, allowH2: false, headersTimeout: 0, bodyTimeout: 0 });
const log = pino(destination({ dest: '/dev/null', sync: false, minLength: 4096 }));
const hasLedger = level === 'ledger';

// As the gateway's own ledger: synced commits, each of them for all exchanges of 10 ms.
const store = hasLedger
  ? open({ path: folder, noSubdir: false, commitDelay: 10, overlappingSync: false, cache: false })
  : undefined;
const balances = store?.openDB<bigint, string>({ name: 'balances' });
const spend = store?.openDB<bigint, string>({ name: 'spend' });
const generations = store?.openDB<object, string>({ name: 'generations' });
/** What is not on disk yet. */
const sums = { balance: 10n ** 18n, spend: 0n };
await balances?.put('account', sums.balance);

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => exchange(request, response, JSON.parse(Buffer.concat(chunks).toString())));
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`ready ${(server.address() as AddressInfo).port}\n`);
});

function exchange(request: IncomingMessage, response: ServerResponse, { model, max_tokens, messages }: MessagesRequest): void {
  const started = performance.now();
  const key = createHash('sha256').update(String(request.headers.authorization)).digest('hex');
  balances?.get('account');
  const id = `msg_${randomBytes(12).toString('hex')}`;
  const conversion = new Conversion(id, model);
  pool.dispatch(
    {
      method: 'POST',
      path: '/v1/chat/completions',
      headers: { 'content-type': 'application/json', authorization: 'Bearer x' },
      body: JSON.stringify({
        model: model.slice(model.indexOf('-') + 1),
        max_tokens,
        messages: messages.map(({ role, content }) => ({ role, content })),
        stream: true,
        stream_options: { include_usage: true },
      }),
    },
    {
      onRequestStart() {
        // Nobody aborts it.
      },
      onResponseStart() {
        response.writeHead(200, { 'content-type': 'text/event-stream', 'request-id': id });
      },
      onResponseData(_controller, chunk) {
        const frames = conversion.push(chunk);
        if (frames !== '') response.write(frames);
      },
      onResponseEnd() {
        settle(id, key, model, conversion.usage, performance.now() - started);
        response.end(conversion.end());
      },
      onResponseError() {
        response.destroy();
      },
    },
  );
}

function settle(id: string, key: string, model: string, usage: TokenCounts, ms: number): void {
  if (level === 'conversion') return;
  const cost = BigInt(usage.prompt_tokens) * 1_250n + BigInt(usage.completion_tokens) * 10_000n;
  sums.balance -= cost;
  sums.spend += cost;
  balances?.put('account', sums.balance);
  spend?.put(key, sums.spend);
  generations?.put(id, { key, model, ...usage, cost, ms, at: Date.now() });
  log.info({ request_id: id, model, ...usage, cost: String(cost), ms }, 'request');
}

const DELTA = '{"content":"';
const AFTER_DELTA = '"},"logprobs"';

/** Cuts the text out of events that begin like the last one, unread: less cannot be done to a text. */
class Conversion {
  readonly #decoder = new TextDecoder();
  readonly #id: string;
  readonly #model: string;
  #rest = '';
  #begun = false;
  /** Where the events of this stream have their text. */
  #deltaAt = -1;
  usage: TokenCounts = { prompt_tokens: 0, completion_tokens: 0 };

  constructor(id: string, model: string) {
    this.#id = id;
    this.#model = model;
  }

  push(bytes: Uint8Array): string {
    this.#rest += this.#decoder.decode(bytes, { stream: true });
    let frames = this.#begun ? '' : this.#start();
    let from = 0;
    for (let end = this.#rest.indexOf('\n\n'); end >= 0; end = this.#rest.indexOf('\n\n', from)) {
      const data = this.#rest.slice(from + 'data: '.length, end);
      from = end + 2;
      const text = data.startsWith(DELTA, this.#deltaAt)
        ? data.slice(this.#deltaAt + DELTA.length, data.lastIndexOf(AFTER_DELTA))
        : this.#read(data);
      if (text !== '')
        frames += `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"${text}"}}\n\n`;
    }
    this.#rest = this.#rest.slice(from);
    return frames;
  }

  /** The text of an event whose place for it is not known yet, as JSON writes it. */
  #read(data: string): string {
    if (data === '[DONE]') return '';
    const { choices, usage }: ChatChunk = JSON.parse(data);
    if (usage) this.usage = usage;
    this.#deltaAt = data.indexOf(DELTA);
    return JSON.stringify(choices[0]?.delta.content ?? '').slice(1, -1);
  }

  #start(): string {
    this.#begun = true;
    const message = { id: this.#id, type: 'message', role: 'assistant', model: this.#model, content: [] };
    const usage = { input_tokens: 0, output_tokens: 0 };
    return `event: message_start\ndata: ${JSON.stringify({ type: 'message_start', message: { ...message, usage } })}\n\nevent: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n`;
  }

  end(): string {
    const usage = { input_tokens: this.usage.prompt_tokens, output_tokens: this.usage.completion_tokens };
    const delta = JSON.stringify({ type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage });
    return `event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\nevent: message_delta\ndata: ${delta}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n`;
  }
}
