/** Copies a store at rest into an empty one, whatever their engines, and believes nothing: each row is read back and compared. */
import { type Archive, type ArchiveRow, type ArchiveTable, archiveText } from './archive.ts';
import type { Difference } from './ledger.ts';
import { done, refused, type Result } from './result.ts';

export interface Copied {
  /** Rows of each table. */
  readonly rows: ReadonlyMap<ArchiveTable, number>;
  readonly journalRows: number;
}

export type NotCopied =
  | { readonly reason: 'target_not_empty' }
  /** A gateway runs on the source, or was killed and its store was not opened since. */
  | { readonly reason: 'exchanges_open'; readonly count: number }
  | { readonly reason: 'source_unsound' | 'copy_unsound'; readonly differences: readonly Difference[] }
  | { readonly reason: 'rows_differ'; readonly expected: string; readonly found: string };

const BATCH = 500;

/**
 * Throws `StoreError` when an engine fails. Unless the result is good the target stays marked as unfinished, and no gateway opens
 * it. `onProgress` is told how many rows are written so far.
 */
export async function copyStore(
  from: Archive,
  to: Archive,
  onProgress: (rows: number) => void = () => undefined,
): Promise<Result<Copied, NotCopied>> {
  if (!(await to.isEmpty())) return refused({ reason: 'target_not_empty' });
  const count = await from.openExchanges();
  if (count > 0) return refused({ reason: 'exchanges_open', count });
  const source = await from.verify();
  if (source.differences.length > 0) return refused({ reason: 'source_unsound', differences: source.differences });

  // Another one may have begun meanwhile: two that write into one place would each find what both have written.
  if (!(await to.begin())) return refused({ reason: 'target_not_empty' });
  const rows = new Map<ArchiveTable, number>();
  let written = 0;
  await writeAll(from.rows(), to, (batch) => {
    for (const { table } of batch) rows.set(table, (rows.get(table) ?? 0) + 1);
    written += batch.length;
    onProgress(written);
  });

  const unequal = await firstDifference(from, to);
  if (unequal !== undefined) return refused(unequal);
  const copy = await to.verify();
  if (copy.differences.length > 0) return refused({ reason: 'copy_unsound', differences: copy.differences });
  await to.finish();
  return done({ rows, journalRows: copy.rows });
}

export async function writeAll(
  rows: AsyncIterable<ArchiveRow>,
  to: Archive,
  onBatch: (batch: readonly ArchiveRow[]) => void = () => undefined,
): Promise<void> {
  let batch: ArchiveRow[] = [];
  const flush = async (): Promise<void> => {
    await to.write(batch);
    onBatch(batch);
    batch = [];
  };
  for await (const row of rows) {
    batch.push(row);
    if (batch.length >= BATCH) await flush();
  }
  if (batch.length > 0) await flush();
}

/** Reads both from the beginning, in step. */
async function firstDifference(from: Archive, to: Archive): Promise<NotCopied | undefined> {
  const copies = to.rows()[Symbol.asyncIterator]();
  try {
    for await (const row of from.rows()) {
      const copy = await copies.next();
      const [expected, found] = [archiveText(row), copy.done === true ? 'nothing' : archiveText(copy.value)];
      if (expected !== found) return { reason: 'rows_differ', expected, found };
    }
    const rest = await copies.next();
    return rest.done === true ? undefined : { reason: 'rows_differ', expected: 'nothing', found: archiveText(rest.value) };
  } finally {
    // What is read to no end holds its snapshot, and no store closes before that is given back.
    await copies.return?.();
  }
}
