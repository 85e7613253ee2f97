/**
 * The client of streams that stay open: opens as many as it is told, reads what comes, and says how many events there were. One
 * JSON job a line on standard input, one JSON result a line on standard output.
 */
import { Agent, type ClientRequest, request } from 'node:http';
import { createInterface } from 'node:readline';

export interface OpenJob {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** What is counted. */
  readonly event: string;
  /** So many more. */
  readonly open: number;
}

/** Nothing of it: only says what there was. */
export interface CloseJob {
  readonly close?: true;
}

export interface OpenResult {
  readonly open: number;
  /** Since the process began. */
  readonly events: number;
  readonly failure?: string;
}

/** Opened at the same time. */
const TOGETHER = 100;

const agent = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY });
const requests = new Set<ClientRequest>();
let events = 0;

/** Resolves with the first bytes. */
function open({ url, headers, body, event }: OpenJob): Promise<void> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, {
      method: 'POST',
      agent,
      headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...headers },
    });
    requests.add(outgoing);
    outgoing.on('response', (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`status ${answer.statusCode}`));
      answer.on('error', () => undefined); // ended by this process
      answer.on('data', (chunk: Buffer) => {
        for (let at = chunk.indexOf(event); at >= 0; at = chunk.indexOf(event, at + 1)) events += 1;
        resolve();
      });
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

function close(): void {
  for (const each of requests) {
    each.on('error', () => undefined); // the socket is taken away
    each.destroy();
  }
  requests.clear();
}

async function run(job: OpenJob | CloseJob): Promise<OpenResult> {
  try {
    if ('open' in job) {
      for (let done = 0; done < job.open; done += TOGETHER)
        await Promise.all(Array.from({ length: Math.min(TOGETHER, job.open - done) }, () => open(job)));
    } else if (job.close) close();
    return { open: requests.size, events };
  } catch (error) {
    return { open: requests.size, events, failure: String(error) };
  }
}

process.stdout.write('ready 0\n');
for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await run(JSON.parse(line)))}\n`);
}
