/** The ways in which a client of the crash lanes asks. Each gives true when the whole answer came, and may be cut at any time. */
import { once } from 'node:events';
import { WebSocket } from 'ws';
import { socketClient } from '../../http/websocket/socket-client.ts';
import type { Kind } from './judgement.ts';

export interface Asking {
  readonly url: string;
  readonly secret: string;
  /** Names the request to the gateway, and to the upstream in its text. */
  readonly marker: string;
  readonly kind: Kind;
  readonly stream: boolean;
}

type Kinds = readonly [Kind, ...Kind[]];

export interface Way {
  /** The model is the Channel's own name. */
  readonly model: string;
  /** What a client may do here, or an upstream. */
  readonly kinds: Kinds;
  ask(asking: Asking): Promise<boolean>;
}

const ALL: Kinds = ['ok', 'ok', 'ok', 'unreported', 'fail', 'leaves'];
/** Answers in one piece: a client that leaves gets none, and a picture without a report is not counted by estimate. */
const WHOLE: Kinds = ['ok', 'ok', 'fail'];
const COMPACTED: Kinds = ['compacts', 'compacts', 'fail'];
const ENDS = /\[DONE\]|message_stop|response\.completed|generation\.completed/;

function posted(path: string, model: string, kinds: Kinds, body: (prompt: string) => object): Way {
  return {
    model,
    kinds,
    async ask({ url, secret, marker, kind, stream }) {
      const leave = new AbortController();
      const response = await fetch(`${url}/v1/${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'x-request-id': marker },
        body: JSON.stringify({ model, ...body(`${marker} kind-${kind}`), ...(path.endsWith('compact') ? {} : { stream }) }),
        signal: leave.signal,
      });
      if (kind === 'leaves') {
        await response.body?.getReader().read();
        leave.abort();
        return false;
      }
      const text = await response.text();
      // Any other refusal is the gateway's own, while its store is away: it is in no row.
      if (kind === 'fail') return response.status === 400;
      return path.endsWith('compact') || !stream ? response.status === 200 : ENDS.test(text);
    },
  };
}

const messages = (content: string): object => ({ messages: [{ role: 'user', content }] });

/** One turn of a connection of its own. */
const TURN: Way = {
  model: 'responses',
  kinds: ALL,
  async ask({ url, secret, marker, kind }) {
    const headers = { authorization: `Bearer ${secret}`, 'x-request-id': marker };
    const ws = new WebSocket(`${url.replace('http', 'ws')}/v1/responses`, { headers });
    const client = socketClient(ws);
    await Promise.race([once(ws, 'open'), client.closed.then(() => Promise.reject(new Error('closed')))]);
    const create = { type: 'response.create', model: 'responses', input: `${marker} kind-${kind}` };
    try {
      if (kind === 'leaves') {
        client.send(create);
        await client.next(({ type }) => type !== 'response.created');
        return false;
      }
      const last = (await client.turn(create)).at(-1);
      return kind === 'fail' ? last?.['status'] === 400 : last?.type === 'response.completed';
    } finally {
      ws.terminate();
    }
  },
};

export const WAYS: readonly [Way, ...Way[]] = [
  posted('chat/completions', 'chat_completion', ALL, messages),
  posted('messages', 'messages', ALL, (prompt) => ({ ...messages(prompt), max_tokens: 50 })),
  posted('responses', 'responses', ALL, (input) => ({ input })),
  posted('responses/compact', 'responses', COMPACTED, (input) => ({ input })),
  posted('images/generations', 'pictures', WHOLE, (prompt) => ({ prompt, size: '64x64' })),
  TURN,
];
