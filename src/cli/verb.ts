/**
 * What a verb of the command line is: data for how it is typed, a function that does it and gives its result as data, and how
 * that result reads in a terminal. Verbs read no environment and no argv: `command-line.ts` passes both in.
 */
import type { Static, TObject } from 'typebox';
import type { Config } from '../http/config/config.ts';
import type { Cause } from '../store/accounts.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../streams/clock.ts';

/** What a verb may use. The admin API hands in the same. */
export interface VerbContext {
  readonly clock: Clock;
  readonly mint: (prefix: string) => string;
  /** Why a change is made, and who asked. The same cause makes the same change once. */
  readonly cause: Cause;
  /** A file that the operator named. Throws RefusedError when it cannot be read. */
  readFile(path: string): string;
  /** Throws ConfigError. */
  config(): Config;
  /**
   * Replaces the configuration file by what `edit` makes of it. Gives its path. Throws ConfigError where that would not be valid;
   * the old file then stays.
   */
  changeConfig(edit: (text: string) => string): string;
  /** Opens the store of the configuration; it is closed when the verb returns. */
  store(): Promise<Store>;
  /**
   * Asks the operator before what cannot be undone. Throws RefusedError where the answer is no, and where there is nobody to ask.
   */
  confirm(sentence: string): Promise<void>;
  /** From now on Ctrl-C aborts this signal instead of ending the process; a closed standard output aborts it as well. */
  interrupted(): AbortSignal;
  /** The bytes on standard input. */
  readonly input: AsyncIterable<Uint8Array>;
  /** Writes to standard output as it is. Settles when more may be written. */
  write(text: string): Promise<void>;
}

export interface VerbOf<Input extends TObject, Result> {
  /** As it is typed: `keys create`, `logs`. */
  readonly name: string;
  /** What may follow its family's name: `create --account NAME [--name N]`. */
  readonly usage: string;
  /** A sentence or two for whoever looks for a verb: `mizu help`, docs/verbs.md. */
  readonly does: string;
  /** Its options and arguments, as the schema of what `run` is given. */
  readonly options: Input;
  /** The members that are typed as arguments, in their order. */
  readonly arguments?: readonly (keyof Input['properties'] & string)[];
  /** Flags beside those of the schema: the member that each sets to false. */
  readonly negations?: Readonly<Record<string, keyof Input['properties'] & string>>;
  /** It changes something: it has `--cause` and `--note`. */
  readonly changes?: true;
  /** It asks before it does what cannot be undone: it has `--yes`, for scripts. */
  readonly confirms?: true;
  /** It is meant where its family is typed alone. */
  readonly isDefault?: true;
  /** It reads no configuration and has no form in JSON: it has neither `--config` nor `--json`. */
  readonly isBare?: true;
  /** Throws InputError and RefusedError. Each part of a sequence is printed when it comes. */
  run(context: VerbContext, options: Static<Input>): Promise<Result> | AsyncIterable<Result>;
  /** The result as data, where it is not that itself. */
  json?(result: Result): unknown;
  /** The result as it is printed without `--json`. Absent: nothing is printed. */
  text?(result: Result, options: Static<Input>, nowMs: number): string;
  /** The exit code. Absent: 0. */
  code?(result: Result): number;
}

/** A verb whose own types matter to nobody but itself. */
export interface Verb extends Omit<VerbOf<TObject, unknown>, 'run' | 'json' | 'text' | 'code' | 'arguments' | 'negations'> {
  readonly arguments: readonly string[];
  readonly negations: Readonly<Record<string, string>>;
  /**
   * Runs it with what {@link readOptions} made of what was typed. Gives each result as it is printed. Ends with the exit code.
   */
  perform(context: VerbContext, read: Reader): AsyncGenerator<Printed, number>;
}

/** One result: as JSON, and as a text. Undefined: nothing is printed. */
export interface Printed {
  readonly value: unknown;
  readonly text: () => string;
}

/** Reads what was typed into what a schema describes. Throws UsageError. */
export type Reader = <Input extends TObject>(schema: Input) => Static<Input>;

export function verb<Input extends TObject, Result>(of: VerbOf<Input, Result>): Verb {
  const { run, json, text, code, ...facts } = of;
  return {
    ...facts,
    arguments: of.arguments ?? [],
    negations: of.negations ?? {},
    async *perform(context, read) {
      const options = read(of.options);
      const made = run(context, options);
      let exit = 0;
      for await (const result of Symbol.asyncIterator in made ? made : one(made)) {
        if (text !== undefined) yield { value: json?.(result) ?? result, text: () => text(result, options, context.clock.now()) };
        exit = Math.max(exit, code?.(result) ?? 0);
      }
      return exit;
    },
  };
}

async function* one<Result>(made: Promise<Result>): AsyncGenerator<Result> {
  yield await made;
}

/** A command line that makes no sense: shown without a stack, exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Characters that control a terminal: cursor, line ends, text direction. */
const CONTROLS = /[\p{Cc}\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;

/** Text of clients and upstreams, safe to print on one line: control characters are escaped as in JSON. */
export function oneLine(text: string): string {
  return text.replace(CONTROLS, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
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
