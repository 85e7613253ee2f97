/** A chat upstream that answers `yes` at once, or holds every request until the test lets it go. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

export interface HeldUpstream {
  /** While it is true, responses are kept in `held` unanswered. */
  holds: boolean;
  readonly held: ServerResponse[];
  readonly url: string;
  /** Holds no more, and answers what it held. */
  release(): void;
}

export async function heldUpstream(
  t: TestContext,
  tokens: { readonly input: number; readonly output: number },
): Promise<HeldUpstream> {
  const answer = JSON.stringify({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: 'yes' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: tokens.input, completion_tokens: tokens.output, total_tokens: tokens.input + tokens.output },
  });
  const reply = (response: ServerResponse) => response.writeHead(200, { 'content-type': 'application/json' }).end(answer);
  const server = createServer((incoming, response) => {
    incoming.resume();
    if (upstream.holds) upstream.held.push(response);
    else reply(response);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const upstream: HeldUpstream = {
    holds: false,
    held: [],
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    release() {
      upstream.holds = false;
      for (const response of upstream.held.splice(0)) reply(response);
    },
  };
  return upstream;
}
