/** Finds the recorded upstream answers and client requests by `MIZU_FIXTURES`. They are data beside the repository, not part of it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = process.env['MIZU_FIXTURES'];

/** The `skip` option of a test that needs fixtures: false where they are, else the reason. */
export const skipWithoutFixtures: string | false =
  root !== undefined && existsSync(join(root, 'recordings')) ? false : 'MIZU_FIXTURES is not set: recordings are not replayed';

export type RecordedDialect = 'chat' | 'responses' | 'messages' | 'gemini';

export interface Recording {
  /** `folder/file`. */
  readonly name: string;
  readonly dialect: RecordedDialect;
  readonly kind: 'stream' | 'json';
  /** SSE text for streams, the body for JSON. */
  readonly text: string;
}

const DIALECT_BY_SUFFIX: readonly (readonly [RegExp, RecordedDialect])[] = [
  [/-chat$/, 'chat'],
  [/^(.*-)?responses$/, 'responses'],
  [/^anthropic-messages$/, 'messages'],
  [/^gemini(-vertex)?$/, 'gemini'],
];

function dialectOf(folder: string): RecordedDialect | undefined {
  return DIALECT_BY_SUFFIX.find(([pattern]) => pattern.test(folder))?.[1];
}

/** Every recording of the text dialects, in name order. `*.chunks.txt` are framed as their protocol frames them. */
export function recordings(wanted?: RecordedDialect): Recording[] {
  if (root === undefined) return [];
  const base = join(root, 'recordings');
  const found: Recording[] = [];
  for (const folder of readdirSync(base).sort()) {
    const dialect = dialectOf(folder);
    if (dialect === undefined || (wanted !== undefined && wanted !== dialect)) continue;
    for (const file of readdirSync(join(base, folder)).sort()) {
      if (file === 'requests.jsonl') continue;
      const raw = readFileSync(join(base, folder, file), 'utf8');
      found.push({ name: `${folder}/${file}`, dialect, ...read(file, raw, dialect) });
    }
  }
  return found;
}

function read(file: string, raw: string, dialect: RecordedDialect): { kind: 'stream' | 'json'; text: string } {
  if (file.endsWith('.json')) return { kind: 'json', text: raw };
  if (file.endsWith('.chunks.txt')) return { kind: 'stream', text: frame(raw, dialect) };
  return { kind: 'stream', text: raw };
}

/** One JSON event a line, to the framing of its protocol. */
function frame(lines: string, dialect: RecordedDialect): string {
  const frames = lines
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const named = dialect === 'responses' || dialect === 'messages';
      const type = named ? /"type"\s*:\s*"([^"]+)"/.exec(line)?.[1] : undefined;
      const event = named ? eventName(line, type) : undefined;
      return event === undefined ? `data: ${line}\n\n` : `event: ${event}\ndata: ${line}\n\n`;
    });
  return frames.join('') + (dialect === 'chat' ? 'data: [DONE]\n\n' : '');
}

function eventName(line: string, fallback: string | undefined): string | undefined {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string') return value.type;
  } catch {
    // Broken on purpose: the decoder is to say so.
  }
  return fallback;
}

export interface RecordedRequest {
  readonly client: string;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly frames?: readonly unknown[];
}

/** What real clients sent, one entry a request. */
export function clientRequests(): RecordedRequest[] {
  if (root === undefined) return [];
  const base = join(root, 'client-requests');
  return readdirSync(base)
    .filter((file) => file.endsWith('.jsonl'))
    .sort()
    .flatMap((file) =>
      readFileSync(join(base, file), 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => ({ client: file.replace('.jsonl', ''), ...(JSON.parse(line) as Omit<RecordedRequest, 'client'>) })),
    );
}
