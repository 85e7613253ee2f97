/**
 * The client: a closed loop of `concurrency` requests until `count` are done, in its own process so that it never shares a core's
 * time with what is measured more than it must. One JSON job a line on standard input, one JSON result a line on standard output.
 */
import { Agent, request } from 'node:http';
import { createInterface } from 'node:readline';

export interface LoadJob {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly count: number;
  readonly concurrency: number;
  /** A request counts only if its answer holds this text: a broken answer must not look fast. */
  readonly mustHold: string;
  /** What the first token looks like in the answer. Absent: the first byte counts. */
  readonly firstToken?: string;
}

export interface LoadResult {
  readonly done: number;
  readonly failed: number;
  readonly firstFailure?: string;
  readonly wallMs: number;
  /** Milliseconds from sending to the first token, ascending. */
  readonly firstTokenMs: readonly number[];
  readonly totalMs: readonly number[];
}

function once(job: LoadJob, agent: Agent): Promise<{ ok: boolean; first: number; total: number; why?: string }> {
  const started = performance.now();
  return new Promise((resolve) => {
    const outgoing = request(job.url, {
      method: 'POST',
      agent,
      headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(job.body), ...job.headers },
    });
    outgoing.on('error', (error) => resolve({ ok: false, first: 0, total: 0, why: error.message }));
    outgoing.on('response', (answer) => {
      let first = 0;
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (chunk: string) => {
        text += chunk;
        if (first === 0 && text.includes(job.firstToken ?? '')) first = performance.now() - started;
      });
      answer.on('error', (error) => resolve({ ok: false, first, total: 0, why: error.message }));
      answer.on('end', () => {
        const ok = answer.statusCode === 200 && text.includes(job.mustHold);
        resolve({
          ok,
          first,
          total: performance.now() - started,
          ...(ok ? {} : { why: `${answer.statusCode} ${text.slice(-300)}` }),
        });
      });
    });
    outgoing.end(job.body);
  });
}

async function run(job: LoadJob, agent: Agent): Promise<LoadResult> {
  const first: number[] = [];
  const total: number[] = [];
  let failed = 0;
  let why: string | undefined;
  let left = job.count;
  const started = performance.now();
  const worker = async (): Promise<void> => {
    while (left-- > 0) {
      const result = await once(job, agent);
      if (result.ok) {
        first.push(result.first);
        total.push(result.total);
      } else {
        failed += 1;
        why ??= result.why;
      }
    }
  };
  await Promise.all(Array.from({ length: job.concurrency }, worker));
  const ascending = (a: number, b: number): number => a - b;
  return {
    done: first.length,
    failed,
    ...(why === undefined ? {} : { firstFailure: why }),
    wallMs: performance.now() - started,
    firstTokenMs: first.sort(ascending),
    totalMs: total.sort(ascending),
  };
}

if (process.argv[1] === import.meta.filename) {
  const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
  process.stdout.write('ready 0\n');
  for await (const line of createInterface({ input: process.stdin })) {
    const job: LoadJob = JSON.parse(line);
    process.stdout.write(`${JSON.stringify(await run(job, agent))}\n`);
  }
}
