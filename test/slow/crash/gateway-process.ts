/** The gateway as a process of its own (`mizu serve` on a configuration file), started and killed. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));

export class GatewayProcess {
  readonly #child: ChildProcessByStdio<null, Readable, Readable>;
  readonly #isTraced: boolean;
  #said = '';
  #errors = '';

  /** `wrapper` goes before the command: a tracer. */
  constructor(config: string, wrapper: readonly string[] = []) {
    this.#isTraced = wrapper.length > 0;
    const [command = process.execPath, ...args] = [...wrapper, process.execPath, MAIN, 'serve', '--config', config];
    this.#child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'] ?? '' },
    });
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.#said += text;
    });
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#errors += text;
    });
  }

  /** On a configuration of its own in `folder`, whose store is `folder/data`. */
  static on(
    folder: string,
    parts: { channels: readonly object[]; models: object },
    wrapper: readonly string[] = [],
  ): GatewayProcess {
    const config = join(folder, 'mizu.config.json');
    const common = {
      listen: { host: '127.0.0.1', port: 0 },
      operations: null,
      store: { path: './data' },
      warm_up_ms: 0,
      log: { level: 'error' },
    };
    writeFileSync(config, JSON.stringify({ ...common, ...parts }));
    return new GatewayProcess(config, wrapper);
  }

  /** Its URL, once it listens. */
  async listening(): Promise<string> {
    for (;;) {
      const url = /Mizu listens on (http:\S+)/.exec(this.#said)?.[1];
      if (url !== undefined) return url;
      if (this.#child.exitCode !== null || this.#child.signalCode !== null)
        throw new Error(`the gateway ended before it listened: ${this.#errors}${this.#said}`);
      await Promise.race([once(this.#child.stdout, 'data'), once(this.#child, 'exit')]);
    }
  }

  /** Resolves when it is reaped. */
  async kill(signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    const traced = this.#isTraced ? childrenOf(this.#child.pid ?? 0) : [];
    // A tracer keeps signals to itself and ends with what it traces.
    if (traced.length === 0) this.#child.kill(signal);
    for (const pid of traced) process.kill(pid, signal);
    await ended;
  }

  get errors(): string {
    return this.#errors;
  }
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);
}
