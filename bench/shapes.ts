/**
 * Traffic shapes: what a network read brings, and what is in it. Literal bytes, seeded; `test/bench/fixtures.test.ts` proves
 * them.
 */
import { type BenchDialect, seeded, textFrames, tokens } from './fixtures.ts';

export interface Shape {
  readonly name: string;
  /** Each is what one read brings. */
  readonly reads: readonly Uint8Array[];
  /** Events with data that the bytes hold. */
  readonly events: number;
}

const EVENTS = 100;
const MIB = 1024 * 1024;

/** Every shape of one dialect's text answers, heartbeats and hostile characters. */
export function shapes(dialect: BenchDialect): Shape[] {
  const frames = textFrames(dialect, tokens(EVENTS - 4));
  const whole = Buffer.from(frames.join(''));
  const events = countEvents(frames);
  return [
    { name: 'full flow', reads: [whole], events },
    { name: 'paced', reads: frames.map((frame) => Buffer.from(frame)), events },
    { name: 'one-byte chunks', reads: Array.from(whole, (_, at) => whole.subarray(at, at + 1)), events },
    longEvent(dialect),
    heartbeats(),
    hostileText(dialect),
  ];
}

function countEvents(frames: readonly string[]): number {
  return frames.filter((frame) => /^data:/m.test(frame)).length;
}

/** One event of one MiB among few others, in reads of 64 KiB. */
function longEvent(dialect: BenchDialect): Shape {
  const frames = textFrames(dialect, ['x'.repeat(MIB)]);
  return { name: 'one-MiB event', reads: cut(Buffer.from(frames.join('')), 64 * 1024), events: countEvents(frames) };
}

function heartbeats(): Shape {
  return { name: 'heartbeats only', reads: Array.from({ length: EVENTS }, () => Buffer.from(': keep-alive\n\n')), events: 0 };
}

/** Characters of every length, escapes and line separators, cut anywhere. */
function hostileText(dialect: BenchDialect): Shape {
  const random = seeded(7);
  const pieces = ['é', '水', '𝄞', '\u2028', '"', '\\', '\u0000', '\r\n', '\ud83d\ude00', '\u0301'];
  const words = Array.from({ length: EVENTS - 4 }, () =>
    Array.from({ length: 4 }, () => pieces[Math.floor(random() * pieces.length)] ?? 'x').join(''),
  );
  const frames = textFrames(dialect, words);
  return { name: 'adversarial UTF-8', reads: cut(Buffer.from(frames.join('')), 7), events: countEvents(frames) };
}

function cut(bytes: Uint8Array, size: number): Uint8Array[] {
  const reads: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += size) reads.push(bytes.subarray(at, at + size));
  return reads;
}

/** A chat stream of one tool call whose arguments come in `count` pieces, in reads of 64 KiB. */
export function toolDeltas(count: number): Shape {
  const random = seeded(11);
  const chunk = (delta: object, finish: string | null = null): string =>
    `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1760000000, model: 'bench-up', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  const call = (members: object) => ({ tool_calls: [{ index: 0, ...members }] });
  const frames = [
    chunk(call({ id: 'call_bench', type: 'function', function: { name: 'write', arguments: '{"text":"' } })),
    ...Array.from({ length: count }, () => chunk(call({ function: { arguments: Math.floor(random() * 1e6).toString(36) } }))),
    chunk(call({ function: { arguments: '"}' } })),
    chunk({}, 'tool_calls'),
    'data: [DONE]\n\n',
  ];
  return { name: `${count} tool deltas`, reads: cut(Buffer.from(frames.join('')), 64 * 1024), events: frames.length };
}

/** A chat request with a history of `turns` user and assistant turns, about `bytes` long altogether. */
export function historyBody(turns: number, bytes: number): string {
  const size = Math.max(1, Math.floor(bytes / turns));
  const messages = Array.from({ length: turns + 1 }, (_, turn) => ({
    role: turn % 2 === 0 ? 'user' : 'assistant',
    content: tokens(Math.ceil(size / 4), turn + 1)
      .join('')
      .slice(0, size),
  }));
  return JSON.stringify({ model: 'm', stream: true, messages });
}
