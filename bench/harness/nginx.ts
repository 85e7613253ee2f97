/**
 * The second floor, where `nginx` is on the PATH: one worker that passes bytes on, unbuffered, with connections kept to the
 * upstream.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { answering, freePort } from './ports.ts';
import { family, stop } from './processes.ts';

export interface Nginx {
  readonly url: string;
  /** The worker and its master, which does nothing. */
  readonly pids: readonly number[];
  stop(): Promise<void>;
}

/** Undefined where it is not installed. */
export async function startNginx(upstreamPort: number): Promise<Nginx | undefined> {
  if (!installed()) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'mizu-bench-nginx-'));
  const port = await freePort();
  const config = join(folder, 'nginx.conf');
  writeFileSync(config, configOf(folder, port, upstreamPort));
  const child = spawn('nginx', ['-p', folder, '-e', join(folder, 'error.log'), '-c', config]);
  let printed = '';
  child.stderr.on('data', (chunk) => {
    printed = (printed + String(chunk)).slice(-2000);
  });
  const gone = (): boolean => child.exitCode !== null;
  await answering(`http://127.0.0.1:${port}/up`, gone, () => `nginx did not start: ${printed}`);
  return {
    url: `http://127.0.0.1:${port}`,
    pids: family(child.pid ?? 0),
    stop: async () => {
      // Asked, not killed: its master ends the worker.
      await stop(child, 'SIGTERM');
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function installed(): boolean {
  return spawnSync('nginx', ['-v'], { stdio: 'ignore' }).status === 0;
}

function configOf(folder: string, port: number, upstreamPort: number): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${folder}/${kind};`);
  return `
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
events { worker_connections 16384; }
http {
  access_log off;
  ${temporary.join('\n  ')}
  client_body_buffer_size 1m;
  keepalive_requests 1000000000;
  upstream bench { server 127.0.0.1:${upstreamPort}; keepalive 256; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port};
    location = /up { return 204; }
    location / {
      proxy_pass http://bench;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }
  }
}
`;
}
