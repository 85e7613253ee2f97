/** One raw HTTP exchange with a simulator: status, headers, and the body in the pieces that arrived. */
import { request as httpRequest } from 'node:http';

export interface Heard {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  readonly bytes: Buffer;
  readonly pieces: readonly Buffer[];
  /** The connection broke before the body ended. */
  readonly broken: boolean;
}

export interface Question {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Leave as soon as this text has arrived. */
  readonly leaveAt?: string;
}

/** Rejects only where no status arrived. */
export function ask(url: string, body?: object | string, question: Question = {}): Promise<Heard> {
  const { promise, resolve, reject } = Promise.withResolvers<Heard>();
  const headers = { 'content-type': 'application/json', ...question.headers };
  const method = question.method ?? (body === undefined ? 'GET' : 'POST');
  const outgoing = httpRequest(url, { method, headers, agent: false }, (response) => {
    const pieces: Buffer[] = [];
    const finish = (broken: boolean) => {
      const bytes = Buffer.concat(pieces);
      resolve({ status: response.statusCode ?? 0, headers: response.headers, text: bytes.toString(), bytes, pieces, broken });
    };
    response.on('data', (piece: Buffer) => {
      pieces.push(piece);
      if (question.leaveAt !== undefined && Buffer.concat(pieces).includes(question.leaveAt)) outgoing.destroy();
    });
    response.on('end', () => finish(false));
    response.on('error', () => finish(true));
  });
  outgoing.on('error', reject);
  outgoing.end(typeof body === 'string' ? body : body === undefined ? undefined : JSON.stringify(body));
  return promise;
}

/** The JSON of every `data:` line but `[DONE]`. */
export function dataOf(text: string): readonly Record<string, unknown>[] {
  return text
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data: {'))
    .map((line): Record<string, unknown> => JSON.parse(line.slice(6)));
}
