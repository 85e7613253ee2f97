/**
 * What the request log is filtered by, once for both engines: each filter has an index, and each row stands in one place of every
 * index that it has.
 */
import type { RequestLogEntry, RequestLogQuery, RequestLogRow } from './request-log.ts';
import type { StoreOptions } from './store.ts';
import { storable } from './storable.ts';
import { StoreError } from './store-error.ts';

/** Those that fit fewest rows first. The names are the format of the LMDB store. */
export const LOG_FILTERS = ['code', 'key', 'channel', 'model', 'account', 'status'] as const;
export type LogFilter = (typeof LOG_FILTERS)[number];

/** Clients choose some of these words; this much of them is an index. */
const MAX_WORDS = 256;
const word = (words: string): string => storable(words.slice(0, MAX_WORDS));

type Filtered = Pick<RequestLogEntry, 'keyId' | 'accountId' | 'model' | 'channelId' | 'attempts' | 'status' | 'errorCode'>;

/** The Channel that answered, or that was asked last. */
const channelOf = ({ channelId, attempts }: Filtered): string | undefined => channelId ?? attempts.at(-1)?.channelId;

/** A row without a code that is no success is found under its status. */
const codeOf = ({ errorCode, status }: Filtered): string | undefined => errorCode ?? (status === 'success' ? undefined : status);

/** In the order of {@link LOG_FILTERS}; undefined where the row is in no place of that index. */
export function filterWords(entry: Filtered): readonly (string | undefined)[] {
  const [code, channel] = [codeOf(entry), channelOf(entry)];
  return [
    code === undefined ? undefined : word(code),
    entry.keyId,
    channel === undefined ? undefined : word(channel),
    word(entry.model),
    entry.accountId,
    entry.status,
  ];
}

/** What a query asks of each index, in the same order. */
export function askedWords({ code, keyId, channelId, model, accountId, status }: RequestLogQuery): [LogFilter, string][] {
  const words = [code, keyId, channelId, model, accountId, status];
  return LOG_FILTERS.flatMap((filter, at) => {
    const asked = words[at];
    return asked === undefined ? [] : [[filter, word(asked)] as [LogFilter, string]];
  });
}

/** Whether a row fits, whatever found it. */
export function isWanted(row: RequestLogRow, query: RequestLogQuery): boolean {
  const words = filterWords(row);
  if (query.untilMs !== undefined && row.loggedAtMs >= query.untilMs) return false;
  return askedWords(query).every(([filter, asked]) => words[LOG_FILTERS.indexOf(filter)] === asked);
}

/** How often a slice of rows that an older version wrote is entered into the indexes, and looked for where none was left. */
const SLICE_MS = 25;
const LOOK_MS = 60_000;

/**
 * Calls `slice`, which returns whether it found any. The returned function ends that, and resolves when no slice runs any more.
 */
export function indexOlderRows(
  { clock, onProblem }: Pick<StoreOptions, 'clock' | 'onProblem'>,
  slice: () => Promise<boolean>,
): () => Promise<void> {
  let isOver = false;
  let running: Promise<void> = Promise.resolve();
  let cancel = (): void => undefined;
  const once = async (): Promise<void> => {
    try {
      next((await slice()) ? SLICE_MS : LOOK_MS);
    } catch (error) {
      // What ails the store is told by itself, and this is tried again.
      if (!(error instanceof StoreError)) onProblem?.({ what: 'log_index_failed', error });
      next(LOOK_MS);
    }
  };
  const next = (ms: number): void => {
    if (isOver) return;
    cancel = clock.after(ms, () => {
      running = once();
    });
  };
  next(SLICE_MS);
  return async () => {
    isOver = true;
    cancel();
    await running;
  };
}
