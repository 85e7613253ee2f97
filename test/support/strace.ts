/**
 * What a process asked of the kernel, in order, and whether what it acknowledged was on the disk by then. For LMDB: the pages
 * that hold the data are written, then synced, then a meta page that points to them is written through a descriptor that is
 * itself synchronous (or synced in turn), and only then the acknowledgement may leave.
 */
import { spawnSync } from 'node:child_process';

/** Why there can be no trace here; undefined where there can. */
export function noStrace(): string | undefined {
  const { status, error } = spawnSync('strace', ['-f', '-o', '/dev/null', 'true'], { encoding: 'utf8' });
  if (error !== undefined) return 'strace is not installed (Debian package strace)';
  return status === 0 ? undefined : 'strace may not trace here';
}

/** The command that traces the one after it into `file`. */
export function traced(file: string): string[] {
  const calls = 'trace=openat,pwrite64,pwritev,pwritev2,fdatasync,fsync,msync,write,writev,sendto,sendmsg';
  return ['strace', '-f', '-y', '-s', '65536', '-e', calls, '-o', file];
}

interface Call {
  readonly name: string;
  readonly text: string;
  /** Lines of the trace at which it began and had ended. */
  readonly from: number;
  readonly to: number;
  readonly failed: boolean;
}

function callsOf(trace: string): Call[] {
  const calls: Call[] = [];
  const open = new Map<string, { readonly text: string; readonly from: number }>();
  for (const [line, whole] of trace.split('\n').entries()) {
    const [, thread = '', text = ''] = /^(\d+)\s+(.*)$/.exec(whole) ?? [];
    const unfinished = text.indexOf(' <unfinished ...>');
    if (unfinished >= 0) {
      open.set(thread, { text: text.slice(0, unfinished), from: line });
      continue;
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(text);
    const begun = resumed === null ? { text, from: line } : open.get(thread);
    const full = (begun?.text ?? '') + (resumed?.[1] ?? '');
    const name = /^(\w+)\(/.exec(full)?.[1];
    if (name === undefined || begun === undefined) continue;
    calls.push({ name, text: full, from: begun.from, to: line, failed: / = -1 [A-Z]+/.test(full) });
  }
  return calls;
}

const WRITES = /^(pwrite|write)/;
const SYNCS = /^(fdatasync|fsync|msync)$/;
const SAYS = /^(write|writev|sendto|sendmsg)$/;
const STORE_FILE = /data\.mdb>/;

/**
 * Undefined when everything that matches `data` was durable before `acknowledgement` left; otherwise what is wrong. Only the
 * store's own file counts as a place for data.
 */
export function unsynced(trace: string, data: string, acknowledgement: RegExp): string | undefined {
  const calls = callsOf(trace);
  const said = calls.find(({ name, text }) => SAYS.test(name) && !STORE_FILE.test(text) && acknowledgement.test(text));
  if (said === undefined) return 'nothing was acknowledged';
  const synchronous = new Set(
    calls.flatMap(({ name, text }) => {
      const fd = /O_D?SYNC/.test(text) && text.includes('data.mdb') ? / = (\d+)/.exec(text)?.[1] : undefined;
      return name === 'openat' && fd !== undefined ? [fd] : [];
    }),
  );
  const inStore = calls.filter(({ text, failed }) => STORE_FILE.test(text) && !failed);
  const first = inStore.find(({ name, text }) => WRITES.test(name) && text.includes(data));
  if (first === undefined || first.to > said.from) return 'acknowledged before the data was written';
  const synced = inStore.find(({ name, from }) => SYNCS.test(name) && from > first.to);
  if (synced === undefined || synced.to > said.from) return 'acknowledged before the data was synced';
  const meta = inStore.find(
    ({ name, from, text }) => from > synced.to && WRITES.test(name) && synchronous.has(/^\w+\((\d+)</.exec(text)?.[1] ?? ''),
  );
  const again = inStore.find(({ name, from }) => SYNCS.test(name) && from > synced.to);
  const done = [meta, again].filter((call) => call !== undefined).map(({ to }) => to);
  if (done.length === 0 || Math.min(...done) > said.from)
    return 'acknowledged before the page that points to the data was synced';
  return undefined;
}
