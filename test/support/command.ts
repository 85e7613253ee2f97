/** The command line in this process: a verb takes a tenth of the time that a process needs to begin. */
import { Readable } from 'node:stream';
import { run } from '../../src/cli/command-line.ts';

export interface Finished {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export async function command(
  args: readonly string[],
  env: Record<string, string> = {},
  input: readonly Uint8Array[] = [],
): Promise<Finished> {
  const out: string[] = [];
  const err: string[] = [];
  const code = await run(args, env, {
    out: (text) => void out.push(`${text}\n`),
    err: (text) => void err.push(`${text}\n`),
    write: (text) => {
      out.push(text);
      return Promise.resolve();
    },
    input: Readable.from(input),
    unread: new AbortController().signal,
    written: () => Promise.resolve(),
  });
  return { code, out: out.join(''), err: err.join('') };
}
