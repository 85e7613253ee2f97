/**
 * Finds the recorded upstream answers and client requests by `MIZU_FIXTURES`. They are data beside the repository, not part of
 * it.
 */
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
  // Some were stored without the blank line that ends their last event.
  return { kind: 'stream', text: /(\}|\[DONE\])\n?$/.test(raw) ? `${raw}\n\n` : raw };
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

/** The answers that a stream holds one after another; most hold one. */
export function answersOf({ dialect, text }: Recording): string[] {
  if (dialect !== 'responses' && dialect !== 'messages') return splitByChatId(dialect, text);
  const starts = dialect === 'responses' ? /^event: response\.created$/gm : /^event: message_start$/gm;
  const ends = dialect === 'responses' ? /^event: response\.(completed|failed|incomplete)$/gm : /^event: message_stop$/gm;
  const ended = [...text.matchAll(ends)].map(({ index }) => index);
  // A second start inside an open answer is part of that answer: the decoder is to judge it.
  const cuts = [...text.matchAll(starts)]
    .map(({ index }) => index)
    .filter((at, order, all) => order > 0 && ended.some((end) => end > (all[order - 1] ?? 0) && end < at));
  return [0, ...cuts].map((from, index) => text.slice(from, cuts[index] ?? text.length));
}

/** Line files of chat protocols: another id after a finished answer begins the next one. */
function splitByChatId(dialect: RecordedDialect, text: string): string[] {
  if (dialect !== 'chat') return [text];
  const answers: string[] = [];
  let id: string | undefined;
  let finished = false;
  for (const frame of text.split(/(?<=\n\n)/)) {
    const own = /^data: ?\{.*?"id" ?: ?"([^"]*)"/.exec(frame)?.[1];
    if (answers.length === 0 || (finished && own !== undefined && own !== id)) {
      answers.push('');
      finished = false;
    }
    id = own ?? id;
    finished ||= /"finish_reason" ?: ?"/.test(frame);
    answers[answers.length - 1] += frame;
  }
  return answers.map((answer) => (answer.includes('[DONE]') || answers.length === 1 ? answer : `${answer}data: [DONE]\n\n`));
}

/** The HTTP status that a recording was answered with, where the index lists one. */
export function recordedStatus(name: string): number | undefined {
  if (root === undefined) return undefined;
  index ??= readIndex(readFileSync(join(root, 'recordings', 'INDEX.md'), 'utf8'));
  return index.get(name);
}

let index: ReadonlyMap<string, number> | undefined;

function readIndex(text: string): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  let folder = '';
  for (const line of text.split('\n')) {
    folder = /^### ([\w-]+)\/ /.exec(line)?.[1] ?? folder;
    const row = /^\| (\S+) \| \w \| \w+ \| (\d{3}) \|/.exec(line);
    if (row !== null) found.set(`${folder}/${row[1]}`, Number(row[2]));
  }
  return found;
}

/** Recorded streams that leave out or contradict what clients go by: what a client of the same dialect reads is mended. */
export const MENDED: ReadonlySet<string> = new Set([
  // Begins in the middle.
  'openai-responses/pydantic-ai__test_background_mode_streaming_starting_after_vcr.2.response.sse',
  // Another id with every event (known failure R19).
  'openai-responses/vercel-ai__github-copilot-id-rotation.1.chunks.txt',
  // Another id in the terminal event.
  'openrouter-responses/pydantic-ai__test_openai_responses_raw_cot_stream_openrouter.response.sse',
  // Shortened by its source: no end of two lists; no end of the input; holes.
  'openai-responses/pydantic-ai__test_openai_responses_model_mcp_list_tools_stream_backfills_missing_results.response.sse',
  'openai-responses/vercel-ai__openai-custom-tool.1.chunks.txt',
  'openai-responses/vercel-ai__openai-phase.1.chunks.txt',
  // Content is a list of blocks.
  'mistral-chat/vercel-ai__mistral-reasoning.chunks.txt',
  // No role.
  'groq-chat/pydantic-ai__test_groq_model_web_search_tool_stream.response.sse',
  'mistral-chat/vercel-ai__mistral-incremental-tool-call.chunks.txt',
  // Chunks that do not say what they are, or since when.
  'moonshotai-chat/vercel-ai__moonshotai-stream.chunks.txt',
  // Calls without index and type; an index that begins with 1.
  'mistral-chat/vercel-ai__mistral-tool-call.chunks.txt',
  'openai-compatible-chat/vercel-ai__anthropic-fallback-tool-call.sse',
]);
