/** The interface of a verb of the command line, and what verbs share. Verbs read no environment and no argv: `command-line.ts` passes both in. */
import type { Store } from '../store/store.ts';
import type { Clock } from '../streams/clock.ts';
import type { Config } from '../http/config/config.ts';

export interface VerbContext {
  /** The positional arguments after the verb. */
  readonly args: readonly string[];
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
  readonly json: boolean;
  readonly clock: Clock;
  readonly mint: (prefix: string) => string;
  print(text: string): void;
  /** A file that the operator named. Throws RefusedError when it cannot be read. */
  readFile(path: string): string;
  /** Throws ConfigError. */
  config(): Config;
  /** Opens the store of the configuration; it is closed when the verb returns. */
  store(): Promise<Store>;
  /** From now on Ctrl-C aborts this signal instead of ending the process; a closed standard output aborts it as well. */
  interrupted(): AbortSignal;
}

/** Resolves with the exit code. Throws UsageError for arguments that make no sense. */
export type Verb = (context: VerbContext) => Promise<number>;

/** The operator's mistake: shown without a stack, exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** A refusal of the store: shown as it is, exit code 1. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
}

/** The options of every verb. */
const COMMON: ReadonlySet<string> = new Set(['config', 'json', 'help']);

/**
 * Throws UsageError for an option that `action` (`keys create`) does not have, and for more than `most` arguments: ignoring them would mislead
 * the operator.
 */
export function allowOnly(
  { args, options }: Pick<VerbContext, 'args' | 'options'>,
  action: string,
  most: number,
  ...names: readonly string[]
): void {
  const own = action.split(' ').length - 1;
  const extra = args[own + most];
  if (extra !== undefined) throw new UsageError(`${action}: unexpected argument ${JSON.stringify(extra)}`);
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined && !COMMON.has(name) && !names.includes(name))
      throw new UsageError(`${action} has no option --${name}`);
  }
}

/** Throws {@link UsageError} where the argument is missing or empty. */
export function argument(context: VerbContext, index: number, name: string): string {
  const value = context.args[index];
  if (value === undefined || value === '') throw new UsageError(`${name} is missing`);
  return value;
}

export function textOption(context: Pick<VerbContext, 'options'>, name: string): string | undefined {
  const value = context.options[name];
  return typeof value === 'string' ? value : undefined;
}

/** Characters that control a terminal: cursor, line ends, text direction. */
const CONTROLS = /[\p{Cc}\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/** Text of clients and upstreams, safe to print on one line: control characters are escaped as in JSON. */
export function oneLine(text: string): string {
  return text.replace(CONTROLS, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Prints JSON with `--json`, otherwise the text; bigints become strings, and maps objects. */
export function report(context: VerbContext, value: unknown, text: string): void {
  const replacer = (_key: string, member: unknown): unknown => {
    if (typeof member === 'bigint') return member.toString();
    return member instanceof Map ? Object.fromEntries(member) : member;
  };
  // The line ends of a text are its own: outside text in it went through `oneLine` before.
  context.print((context.json ? JSON.stringify(value, replacer) : text).split('\n').map(oneLine).join('\n'));
}

/** Columns, padded; the first row is the head. */
export function table(rows: readonly (readonly string[])[]): string {
  const lines = rows.map((row) => row.map(oneLine));
  const widths = (lines[0] ?? []).map((_, column) => lines.reduce((most, row) => Math.max(most, (row[column] ?? '').length), 0));
  return lines
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
