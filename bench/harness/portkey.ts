/**
 * Portkey's gateway (`@portkey-ai/gateway`), which is installed elsewhere and told its upstream in each request. It takes chat
 * requests alone.
 */
import { spawn } from 'node:child_process';
import { answerHolds, CLIENT_PATHS, requestBody } from '../fixtures.ts';
import { answering, freePort } from './ports.ts';
import { stop } from './processes.ts';
import type { Subject } from './subjects.ts';

/**
 * Its streams fail on current Node versions as it comes from the registry: it appends to the headers of what `fetch` gave, and
 * those are immutable. Answers of its `fetch` that are streams get headers of their own; whole answers are left as they are.
 */
const MUTABLE_HEADERS = `const { fetch } = globalThis;
globalThis.fetch = async (...request) => {
  const answer = await fetch(...request);
  if (!answer.headers.get('content-type')?.startsWith('text/event-stream')) return answer;
  return Object.defineProperty(answer, 'headers', { value: new Headers(answer.headers) });
};`;

const PROVIDERS: Readonly<Record<string, string>> = { chat: 'openai', messages: 'anthropic' };

/** `path` is the folder of the package, or its start script. */
export async function startPortkey(path: string, upstreamUrl: string): Promise<Subject> {
  const script = path.endsWith('.js') ? path : `${path}/build/start-server.js`;
  const port = await freePort();
  const preload = `data:text/javascript,${encodeURIComponent(MUTABLE_HEADERS)}`;
  const child = spawn(process.execPath, ['--import', preload, script, '--headless', `--port=${port}`], { stdio: 'ignore' });
  await answering(
    `http://127.0.0.1:${port}/`,
    () => child.exitCode !== null,
    () => 'the rival did not start',
  );
  return {
    name: 'Portkey',
    pid: child.pid ?? 0,
    ask({ client, upstream }, shape) {
      const provider = PROVIDERS[upstream];
      if (client !== 'chat' || provider === undefined) return undefined;
      const stream = shape !== 'whole';
      return {
        url: `http://127.0.0.1:${port}${CLIENT_PATHS.chat}`,
        headers: {
          authorization: 'Bearer x',
          'x-portkey-provider': provider,
          'x-portkey-custom-host': `${upstreamUrl}/v1`,
        },
        body: requestBody('chat', shape, stream),
        mustHold: answerHolds('chat', stream),
      };
    },
    stop: () => stop(child),
  };
}
