/** The tables of the LMDB store and the shape of their rows. Nothing else opens a table. */
import type { Database, Key, RootDatabase } from 'lmdb';
import type { DayCounts } from '../day-usage.ts';
import type { AccountRecord } from '../accounts.ts';
import type { KeyRecord } from '../keys.ts';
import { type HoldRow, type JournalHead, type JournalRow, journalText } from '../ledger.ts';
import type { Lease } from '../leases.ts';
import type { LimitCount } from '../limit-counts.ts';
import type { RequestLogRow } from '../request-log.ts';
import type { OpenExchange } from '../settlement.ts';
import type { SpendRow } from '../spend-windows.ts';
import type { VideoTask } from '../videos.ts';
import type { Listed } from './listed.ts';
import { type FilterTable, PLACES_BYTES } from './log-places.ts';
import { ROLLUP_BYTES, type RollupKey, type StoredRollup } from './rollup-rows.ts';
import { JOURNAL_ROW, LOG_ROW, SPEND_ROW } from './row-shapes.ts';
import { type Encoder, listText, textEncoder } from './text-encoder.ts';

/** The version of this layout. A store of a newer one is refused; rows of an older one are read as they are. */
export const SCHEMA = 6;

/** Before this one the request log had an index of keys alone. */
export const LOG_FILTER_INDEX = 6;

/** Before this one nothing was summed up by hour. */
export const ROLLUPS = 5;

/** Before this one the rows of exchanges were in `journalRefs`. */
export const EXCHANGES_APART = 3;

/** A process that has this store open. */
export interface ProcessRow {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly heartbeatAtMs: number;
}

/** The lease with the registration of the process that took it. */
export interface LeaseRow extends Lease {
  readonly owner: string;
}

export interface LimitCountRow extends LimitCount {
  readonly atMs: number;
}

export interface ClaimRow {
  readonly hash: string;
  readonly atMs: number;
}

export interface IdempotencyRow {
  readonly taskId: string;
  readonly bodyHash: string;
}

/** An exchange: the seq of its row in the log, 0 when that was pruned, then those of its rows in the journal. */
export type StoredEntry = readonly number[];

export interface LogHead {
  readonly seq: number;
  readonly atMs: number;
}

export interface Meta {
  readonly schema: number;
  readonly journalHead: JournalHead;
  readonly logHead: LogHead;
  readonly videoNumber: number;
  readonly secrets: readonly { readonly id: number; readonly bytes: Uint8Array }[];
  readonly probe: number;
  /** Rises with every change of a key or an account, so that one small read tells whether a remembered one still holds. */
  readonly keyGeneration: number;
  /** True where an older schema wrote rows of the journal: all of those are in `journalRefs`. */
  readonly olderRefs: boolean;
  /** The hour up to which an older schema logged rows without summing them up; absent where there is none. */
  readonly rollupsAfter: number;
  /** The place up to which rows of an older schema are not in `logFilters` yet; absent where there is none. */
  readonly filtersAfter: number;
}

export interface Tables {
  readonly meta: Database<Meta[keyof Meta], keyof Meta>;
  readonly accounts: Database<AccountRecord, string>;
  readonly accountNames: Database<string, string>;
  readonly keys: Database<KeyRecord, string>;
  /** Digest to key id. */
  readonly keyDigests: Database<string, string>;
  readonly journal: Database<JournalRow, number>;
  /** [ref, kind] to seq, of the rows that no exchange caused: those are in `exchanges`. */
  readonly journalRefs: Database<number, [string, string]>;
  readonly balances: Database<bigint, string>;
  readonly holds: Database<HoldRow, string>;
  readonly spend: Database<SpendRow, string>;
  /** [key id, day] */
  readonly days: Database<DayCounts, [string, number]>;
  /** [key id, hour since the epoch, model, Channel, code]; key id '' for all keys together. */
  readonly rollupHours: Database<StoredRollup, RollupKey>;
  /** The same by day. */
  readonly rollupDays: Database<StoredRollup, RollupKey>;
  /** [id of the process, exchange id] */
  readonly openExchanges: Database<OpenExchange, [string, string]>;
  readonly processes: Database<ProcessRow, string>;
  readonly log: Database<RequestLogRow, number>;
  /** By exchange id: see `exchange-index.ts`. */
  readonly exchanges: Database<StoredEntry, string>;
  /** [request id | client's request id, seq], where they do not give the exchange id away (`otherNames`). */
  readonly logIds: Database<true, [string, number]>;
  /** By filter and word, the places of 256 rows: see `log-index.ts`. */
  readonly logFilters: FilterTable;
  /** What an older schema had in its stead: [key id, first seq] to the seqs that one transaction wrote for the key. */
  readonly olderLogKeys: Database<readonly number[], [string, number]>;
  readonly videos: Database<VideoTask, string>;
  /** [account id, key id, number] to task id. */
  readonly videoOwners: Database<string, [string, string, number]>;
  /** [account id, key id, idempotency key] */
  readonly idempotency: Database<IdempotencyRow, [string, string, string]>;
  /** [state, due at, task id]: open tasks only. */
  readonly videoDue: Database<true, [string, number, string]>;
  readonly leases: Database<LeaseRow, string>;
  /** [member, bucket] */
  readonly limitCounts: Database<LimitCountRow, [string, string]>;
  /** [kind, id] to JSON text: see `controls.ts`. */
  readonly controls: Database<string, [string, string]>;
  /** Requests of operators by the name that they claimed. */
  readonly claims: Database<ClaimRow, string>;
}

export function openTables(root: RootDatabase): Tables {
  // `bigint` comes back as bigint whatever its size, a Map as a Map and a plain object as a plain object.
  const open = <V, K extends Key>(name: string): Database<V, K> => root.openDB<V, K>({ name, encoding: 'msgpack', cache: false });
  // Its type is not in lmdb-js's typings.
  const { encoder } = root as RootDatabase & { readonly encoder: Encoder<unknown> };
  const openWith = <V, K extends Key>(name: string, own: Encoder<V>): Database<V, K> => {
    const options = { name, cache: false, encoder: own };
    return root.openDB<V, K>(options);
  };
  return {
    meta: open('meta'),
    accounts: open('accounts'),
    accountNames: open('account_names'),
    keys: open('keys'),
    keyDigests: open('key_digests'),
    journal: openWith(
      'journal',
      textEncoder(encoder, { text: (row) => closedText(journalText(row), row.hash, row.state), value: JOURNAL_ROW.value }),
    ),
    journalRefs: open('journal_refs'),
    balances: open('balances'),
    holds: open('holds'),
    spend: openWith('spend', listEncoder(encoder, SPEND_ROW)),
    days: open('days'),
    rollupHours: openWith('rollup_hours', ROLLUP_BYTES),
    rollupDays: openWith('rollup_days', ROLLUP_BYTES),
    openExchanges: open('open_exchanges'),
    processes: open('owners'),
    log: openWith('log', textEncoder(encoder, { text: (row) => listText(LOG_ROW.list(row)), value: LOG_ROW.value })),
    exchanges: openWith('log_exchanges', textEncoder(encoder, { text: (entry) => JSON.stringify(entry), value: storedEntry })),
    logIds: open('log_ids'),
    logFilters: openWith('log_filters', PLACES_BYTES),
    olderLogKeys: open('log_keys'),
    videos: open('videos'),
    videoOwners: open('video_owners'),
    idempotency: open('idempotency'),
    videoDue: open('video_due'),
    leases: open('leases'),
    limitCounts: open('limit_counts'),
    controls: open('controls'),
    claims: open('operator_claims'),
  };
}

/** The row's text with its hash behind it, and then its state if it has one. */
export function closedText(text: string, hash: string, state: string | undefined): string {
  return `${text.slice(0, -1)},"${hash}"${state === undefined ? '' : `,${JSON.stringify(state)}`}]`;
}

/** Before schema 3 an entry was the place in the log alone. */
function storedEntry(stored: unknown): StoredEntry {
  return typeof stored === 'number' ? [stored] : (stored as StoredEntry);
}

function listEncoder<V>(encoder: Encoder<unknown>, shape: Listed<V>): Encoder<V> {
  return {
    copyBuffers: true,
    encode: (row, mode) => encoder.encode(shape.list(row), mode),
    decode: (bytes, options) => shape.value(encoder.decode(bytes, options)),
  };
}

/** A value of the meta table. */
export function metaOf<Name extends keyof Meta>(tables: Tables, name: Name): Meta[Name] | undefined {
  return tables.meta.get(name) as Meta[Name] | undefined;
}
