/** All that an LMDB store holds, as rows that no engine owns: for copies, and for the recount. */
import type { ArchiveRow } from '../archive.ts';
import type { VideoTask } from '../videos.ts';
import { controlOf } from './controls.ts';
import { leaseOf } from './leases.ts';
import { rollupOf } from './rollup-rows.ts';
import { metaOf, type Tables } from './tables.ts';

/** For copies, which compare row by row. */
export function rowsOf(tables: Tables): Generator<ArchiveRow> {
  const videos = [...tables.videos.getRange()].map(({ value }) => value).sort((a, b) => a.number - b.number);
  return rowsWith(tables, videos);
}

/** The same rows where nobody minds in which order the videos come: these need not be gathered first. */
export function rowsUnsorted(tables: Tables): Generator<ArchiveRow> {
  return rowsWith(
    tables,
    tables.videos.getRange().map(({ value }) => value),
  );
}

function* rowsWith(tables: Tables, videos: Iterable<VideoTask>): Generator<ArchiveRow> {
  for (const { value } of tables.journal.getRange()) yield { table: 'journal', row: value };
  for (const { value } of tables.accounts.getRange()) yield { table: 'account', row: value };
  for (const { value } of tables.keys.getRange()) yield { table: 'key', row: value };
  for (const { key, value } of tables.balances.getRange()) yield { table: 'balance', row: { account: key, nanos: value } };
  for (const { value } of tables.holds.getRange()) yield { table: 'hold', row: value };
  for (const { key, value } of tables.spend.getRange()) yield { table: 'spend', row: { keyId: key, ...value } };
  for (const { key, value } of tables.days.getRange()) yield { table: 'day', row: { keyId: key[0], day: key[1], ...value } };
  for (const { key, value } of tables.rollupHours.getRange())
    if (key[0] !== '') yield { table: 'rollup', row: rollupOf(key, value) };
  for (const { value } of tables.log.getRange()) yield { table: 'log', row: value };
  for (const row of videos) yield { table: 'video', row };
  for (const { key, value } of tables.idempotency.getRange()) {
    const [accountId, keyId, idempotencyKey] = key;
    yield { table: 'idempotency', row: { accountId, keyId, idempotencyKey, ...value } };
  }
  for (const { value } of tables.leases.getRange()) yield { table: 'lease', row: leaseOf(value) };
  for (const row of metaOf(tables, 'secrets') ?? []) yield { table: 'secret', row };
  for (const { key, value } of tables.controls.getRange()) yield { table: 'control', row: controlOf(key, value) };
  const { seq: logSeq, atMs: logAtMs } = metaOf(tables, 'logHead') ?? { seq: 0, atMs: 0 };
  const rollupsAfter = metaOf(tables, 'rollupsAfter');
  const heads = { logSeq, logAtMs, videoNumber: metaOf(tables, 'videoNumber') ?? 0 };
  yield { table: 'heads', row: { ...heads, ...(rollupsAfter === undefined ? {} : { rollupsAfter }) } };
}
