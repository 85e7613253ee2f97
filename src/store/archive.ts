/**
 * Everything that a store holds, as rows that no engine owns: what a copy from one engine to another reads, writes and compares.
 * Indexes are not rows, each engine makes its own; open exchanges and registrations of processes are not either, a copy is made
 * of a store at rest.
 */
import type { AccountRecord } from './accounts.ts';
import type { Control } from './controls.ts';
import type { DayCounts } from './day-usage.ts';
import type { EnvelopeSecret } from './envelope-secrets.ts';
import type { KeyRecord } from './keys.ts';
import type { Lease } from './leases.ts';
import type { Hold, JournalRow, LedgerAccount, Verification } from './ledger.ts';
import type { RequestLogRow } from './request-log.ts';
import type { Rollup } from './rollups.ts';
import type { SpendRow } from './spend-windows.ts';
import type { VideoTask } from './videos.ts';

export interface ArchivedHeads {
  readonly logSeq: number;
  readonly logAtMs: number;
  readonly videoNumber: number;
  /** The hour up to which rows were logged without being summed up; absent where there is none. */
  readonly rollupsAfter?: number;
}

export interface ArchivedIdempotency {
  readonly accountId: string;
  readonly keyId: string;
  readonly idempotencyKey: string;
  readonly taskId: string;
  readonly bodyHash: string;
}

export type ArchiveRow =
  | { readonly table: 'account'; readonly row: AccountRecord }
  | { readonly table: 'key'; readonly row: KeyRecord }
  | { readonly table: 'journal'; readonly row: JournalRow }
  | { readonly table: 'balance'; readonly row: { readonly account: string; readonly nanos: bigint } }
  | { readonly table: 'hold'; readonly row: Hold & { readonly from: LedgerAccount } }
  | { readonly table: 'spend'; readonly row: SpendRow & { readonly keyId: string } }
  | { readonly table: 'day'; readonly row: DayCounts & { readonly keyId: string; readonly day: number } }
  /** Of hours, by key: days, and both for all keys together, follow from them. */
  | { readonly table: 'rollup'; readonly row: Rollup }
  | { readonly table: 'log'; readonly row: RequestLogRow }
  | { readonly table: 'video'; readonly row: VideoTask }
  | { readonly table: 'idempotency'; readonly row: ArchivedIdempotency }
  | { readonly table: 'lease'; readonly row: Lease }
  | { readonly table: 'secret'; readonly row: EnvelopeSecret }
  | { readonly table: 'control'; readonly row: Control }
  | { readonly table: 'heads'; readonly row: ArchivedHeads };
export type ArchiveTable = ArchiveRow['table'];

/** What a backup is made from: an {@link Archive}, or a store that serves. */
export interface BackupSource {
  /** Exchanges that somebody has open. */
  openExchanges(): Promise<number>;
  /**
   * Writes all that the store held at one moment into an empty folder, as an LMDB store, while others go on writing. Exchanges
   * that are open at that moment are left out. `open` opens the folder.
   */
  backUp(folder: string, open: (folder: string) => Promise<Archive>): Promise<void>;
}

export interface Archive extends BackupSource {
  /**
   * Every row, table by table in a fixed order, the journal first, each table in the order of its key (bytes of UTF-8, numbers by
   * size). Who stops before the end returns the iterator, as `for await` does: it holds a snapshot.
   */
  rows(): AsyncIterable<ArchiveRow>;
  /** True when it holds no account, no journal row and no secret. */
  isEmpty(): Promise<boolean>;
  /**
   * From now until `finish` no gateway can open it. False, and nothing is changed, where it is not empty or another copy has
   * begun.
   */
  begin(): Promise<boolean>;
  /** Resolves when the rows are on disk. */
  write(rows: readonly ArchiveRow[]): Promise<void>;
  finish(): Promise<void>;
  verify(): Promise<Verification>;
  close(): Promise<void>;
}

/** Stands where the schema's number stands while a copy is under way, so that every version refuses to open it. */
export const COPYING = 1_000_000;

/** Why a store with a newer schema than `known` cannot be opened. */
export function newerSchemaMessage(found: number, known: number): string {
  return found === COPYING
    ? 'the store holds an unfinished copy: remove it and copy again'
    : `the store has schema ${found}, this version knows ${known}`;
}

/** A row as text: two rows are the same exactly when their texts are. */
export function archiveText({ table, row }: ArchiveRow): string {
  return `${table} ${JSON.stringify(row, exact)}`;
}

function exact(_: string, value: unknown): unknown {
  if (typeof value === 'bigint') return { bigint: value.toString() };
  if (value instanceof Map) return { map: [...value] };
  if (value instanceof Uint8Array) return { bytes: Buffer.from(value).toString('hex') };
  // A Buffer has become a plain object before it comes here.
  if (isBufferJson(value)) return { bytes: Buffer.from(value.data).toString('hex') };
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function isBufferJson(value: unknown): value is { readonly data: readonly number[] } {
  return (
    typeof value === 'object' &&
    value !== null &&
    'type' in value &&
    value.type === 'Buffer' &&
    'data' in value &&
    Array.isArray(value.data)
  );
}
