/**
 * Other gateways behind one adapter: something that is running or can be started, and how it is asked. They are not installed by this
 * repository; a rival is named on the command line and its request counts only if its answer is right.
 */
import { spawn } from 'node:child_process';
import { answering, freePort } from './ports.ts';
import { stop } from './processes.ts';

export interface Rival {
  readonly name: string;
  /** Takes chat requests. */
  readonly url: string;
  /** Processes whose processor time is its own; none where that is not known. */
  readonly pids: readonly number[];
  /** The whole answers a second that are wanted of Mizu, as a multiple of its. */
  readonly goal?: number;
  /** For an upstream of the dialect; undefined: it cannot be told so in a request, or does not convert that. */
  headers(upstream: 'chat' | 'messages'): Readonly<Record<string, string>> | undefined;
  stop(): Promise<void>;
}

const CHAT = '/chat/completions';

/**
 * `portkey=PATH` starts Portkey's gateway (`@portkey-ai/gateway`, installed elsewhere). `NAME=http://[KEY@]HOST:PORT/v1[#PID]` is running already
 * and has this bench's upstream behind it: asked as it is, with the key as a bearer token; its processor time is that of PID.
 */
export async function startRival(description: string, upstreamUrl: string): Promise<Rival> {
  const at = description.indexOf('=');
  const [name, where] = [description.slice(0, at), description.slice(at + 1)];
  if (at < 1) throw new Error(`a rival is NAME=URL or portkey=PATH, not ${description}`);
  if (/^https?:/.test(where)) return running(name, new URL(where));
  if (name !== 'portkey') throw new Error(`only portkey can be started from a path, not ${name}`);
  return await startPortkey(where, upstreamUrl);
}

function running(name: string, { protocol, host, pathname, username, hash }: URL): Rival {
  return {
    name,
    url: `${protocol}//${host}${pathname.replace(/\/$/, '')}${CHAT}`,
    pids: hash === '' ? [] : [Number(hash.slice(1))],
    headers: (upstream) => (upstream === 'chat' ? { authorization: `Bearer ${username || 'x'}` } : undefined),
    stop: () => Promise.resolve(),
  };
}

/**
 * Its streams fail on current Node versions as it comes from the registry: it appends to the headers of what `fetch` gave, and those are
 * immutable. Answers of its `fetch` that are streams get headers of their own; whole answers are left as they are.
 */
const MUTABLE_HEADERS = `const { fetch } = globalThis;
globalThis.fetch = async (...request) => {
  const answer = await fetch(...request);
  if (!answer.headers.get('content-type')?.startsWith('text/event-stream')) return answer;
  return Object.defineProperty(answer, 'headers', { value: new Headers(answer.headers) });
};`;

const PROVIDERS = { chat: 'openai', messages: 'anthropic' } as const;

/** `path` is the folder of the package, or its start script. */
async function startPortkey(path: string, upstreamUrl: string): Promise<Rival> {
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
    url: `http://127.0.0.1:${port}/v1${CHAT}`,
    pids: [child.pid ?? 0],
    goal: 5,
    headers: (upstream) => ({
      authorization: 'Bearer x',
      'x-portkey-provider': PROVIDERS[upstream],
      'x-portkey-custom-host': `${upstreamUrl}/v1`,
    }),
    stop: () => stop(child),
  };
}
