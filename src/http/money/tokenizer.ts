/**
 * Counts tokens where no upstream did. The tables of the tokenizer are loaded when the process starts; while they are not there,
 * four bytes count as a token. A failure to load them is never remembered: it is logged, and loading is tried again a minute
 * later.
 */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import { type Clock, type Timer, within } from '../../streams/clock.ts';
import { TokenTable } from './token-table.ts';

/** May take time that grows with the length of the text; the caller bounds that. */
export type CountTokens = (text: string) => number;
export type LoadTokenizer = () => Promise<CountTokens>;

export const BYTES_A_TOKEN = 4;
/** Longer texts are counted by their bytes: a tokenizer would hold up the event loop. */
const MAX_COUNTED_CHARS = 64 * 1024;
/** A load that takes longer counts as failed; what it brings later is used all the same. */
const LOAD_MS = 10_000;
const RETRY_MS = 60_000;

export class Tokenizer {
  readonly #load: LoadTokenizer;
  readonly #clock: Clock;
  readonly #log: Logger;
  #count: CountTokens | undefined;
  #tried = false;
  #closed = false;
  #retry: Timer | undefined;
  /** Resolves when the first try to load it is over, however it ended. */
  readonly firstTry: Promise<void>;

  constructor(clock: Clock, log: Logger, load: LoadTokenizer = loadTables) {
    this.#clock = clock;
    this.#log = log;
    this.#load = load;
    this.firstTry = this.#try();
  }

  /** Whether the first try to load it is over, however it ended. */
  get tried(): boolean {
    return this.#tried;
  }

  /** Never fails. Exact to the tokenizer for texts of up to 64 Ki characters, where it is loaded. */
  async count(text: string): Promise<number> {
    if (text === '') return 0;
    if (this.#count === undefined || text.length > MAX_COUNTED_CHARS) return roughCount(text);
    try {
      return this.#count(text);
    } catch (error) {
      this.#log.error({ err: error }, 'a text could not be counted: its bytes are');
      return roughCount(text);
    }
  }

  close(): void {
    this.#closed = true;
    this.#retry?.cancel();
  }

  async #try(): Promise<void> {
    try {
      const loading = this.#load().then((count) => {
        this.#count = count;
      });
      await within(this.#clock, LOAD_MS, loading, () => new Error(`the tokenizer did not load within ${LOAD_MS} ms`));
    } catch (error) {
      this.#log.error({ err: error }, 'the tokenizer could not be loaded: tokens are estimated by bytes until it is');
      if (!this.#closed) this.#retry = this.#clock.setTimeout(() => this.#tryAgain(), RETRY_MS);
    } finally {
      this.#tried = true;
    }
  }

  #tryAgain(): void {
    if (this.#count === undefined) void this.#try();
  }
}

/** Four bytes a token. */
function roughCount(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_A_TOKEN);
}

/** One for all gateways of a process: it never changes, and takes a tenth of a second to make. A failure is not kept. */
let vocabulary: Promise<TokenTable> | undefined;

function readVocabulary(): Promise<TokenTable> {
  vocabulary ??= readFile(fileURLToPath(import.meta.resolve('gpt-tokenizer/data/o200k_base.tiktoken')))
    .then((ranks) => new TokenTable(ranks))
    .catch((error: unknown) => {
      vocabulary = undefined;
      throw error;
    });
  return vocabulary;
}

async function loadTables(): Promise<CountTokens> {
  const { O200K_TOKEN_SPLIT_REGEX: pieces } = await import('gpt-tokenizer/encodingParams/constants');
  const table = await readVocabulary();
  return (text) => {
    let tokens = 0;
    for (const run of shortRuns(text)) for (const [piece] of run.matchAll(pieces)) tokens += table.count(piece);
    return tokens;
  };
}

/** A run that the tokenizer takes for one word. Its time grows with the square of the length, and no real word is this long. */
const LONG_RUN = /[\p{L}\p{M}]{64}|[^\s\p{L}\p{N}]{64}|\s{64}/gu;

/** The text in pieces: long runs of letters, signs or spaces are cut. */
function shortRuns(text: string): string[] {
  const pieces: string[] = [];
  let from = 0;
  for (const { 0: run, index } of text.matchAll(LONG_RUN)) {
    pieces.push(text.slice(from, index + run.length));
    from = index + run.length;
  }
  pieces.push(text.slice(from));
  return pieces;
}
