/**
 * Other gateways behind one adapter: something that is running or can be started, with a URL that speaks chat completions. They are not
 * installed by this repository; a rival is named on the command line and its request counts only if its answer is right.
 */
import { spawn } from 'node:child_process';
import { get } from 'node:http';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Rival {
  readonly name: string;
  /** Takes a chat request for the upstream's model. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined: it was running already, and its processor time is not known. */
  readonly pid: number | undefined;
  stop(): Promise<void>;
}

/** `portkey=PATH` starts Portkey's gateway (`@portkey-ai/gateway`, installed elsewhere); `NAME=http://…` is asked as it is. */
export async function startRival(description: string, upstreamUrl: string): Promise<Rival> {
  const at = description.indexOf('=');
  const [name, where] = [description.slice(0, at), description.slice(at + 1)];
  if (at < 1) throw new Error(`a rival is NAME=URL or portkey=PATH, not ${description}`);
  if (/^https?:/.test(where)) return { name, url: where, headers: {}, pid: undefined, stop: () => Promise.resolve() };
  if (name !== 'portkey') throw new Error(`only portkey can be started from a path, not ${name}`);
  return await startPortkey(where, upstreamUrl);
}

/** `path` is the folder of the package, or its start script. */
async function startPortkey(path: string, upstreamUrl: string): Promise<Rival> {
  const script = path.endsWith('.js') ? path : `${path}/build/start-server.js`;
  const port = await freePort();
  const child = spawn(process.execPath, [script, '--headless', `--port=${port}`], { stdio: 'ignore' });
  for (let attempt = 0; !(await answers(port)); attempt++) {
    if (child.exitCode !== null || attempt > 200) throw new Error('the rival did not start');
    await sleep(50);
  }
  return {
    name: 'Portkey',
    url: `http://127.0.0.1:${port}/v1/chat/completions`,
    headers: { authorization: 'Bearer x', 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `${upstreamUrl}/v1` },
    pid: child.pid,
    stop: async () => {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await new Promise((resolve) => child.once('exit', resolve));
    },
  };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    get(`http://127.0.0.1:${port}/`, (answer) => resolve(answer.resume().statusCode !== undefined)).on('error', () =>
      resolve(false),
    );
  });
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}
