/** `mizu store migrate`, `mizu store copy --from PLACE --to PLACE`. A place is a folder or a `postgres://` address. */
import type { Archive } from '../store/archive.ts';
import { copyStore, type NotCopied } from '../store/copy.ts';
import type { Store } from '../store/store.ts';
import { RefusedError, report, allowOnly, textOption, UsageError, type Verb, type VerbContext } from './verb.ts';

/** What the verb needs of the store room; the entry knows the engines. */
export interface StorePlaces {
  /** False for a folder that holds no store. */
  exists(place: string): boolean;
  open(place: string): Promise<Store>;
  openArchive(place: string): Promise<Archive>;
  migrate(url: string): Promise<{ readonly from: number; readonly to: number; readonly applied: readonly string[] }>;
}

const USAGE = 'store migrate | store copy --from PLACE --to PLACE';

export function storeVerb(places: StorePlaces): Verb {
  return async (context) => {
    if (context.args[0] === 'migrate') return await migrate(context, places);
    if (context.args[0] === 'copy') return await copy(context, places);
    throw new UsageError(USAGE);
  };
}

async function migrate(context: VerbContext, places: StorePlaces): Promise<number> {
  allowOnly(context, 'store migrate', 0);
  const { storeUrl } = context.config();
  if (storeUrl === undefined) throw new RefusedError('the store is a folder: it needs no migration');
  const done = await places.migrate(storeUrl);
  const text =
    done.applied.length === 0
      ? `the store has schema ${done.to} already`
      : `from schema ${done.from} to ${done.to}: ${done.applied.join(', ')}`;
  report(context, done, text);
  return 0;
}

async function copy(context: VerbContext, places: StorePlaces): Promise<number> {
  allowOnly(context, 'store copy', 0, 'from', 'to');
  const [from, to] = [textOption(context, 'from'), textOption(context, 'to')];
  if (from === undefined || to === undefined) throw new UsageError(USAGE);
  if (from === to) throw new UsageError('--from and --to are the same place');
  if (!places.exists(from)) throw new RefusedError('there is no store to copy at --from');
  // Opening the store closes the exchanges of a dead gateway. Those of a running one stay open, and the copy is refused.
  const store = await places.open(from);
  await store.close();
  const source = await places.openArchive(from);
  try {
    const target = await places.openArchive(to);
    try {
      const copied = await copyStore(source, target);
      if (!copied.ok) throw new RefusedError(refusalText(copied.refusal));
      const rows = Object.fromEntries(copied.value.rows);
      const count = [...copied.value.rows.values()].reduce((sum, some) => sum + some, 0);
      const text = `${count} rows copied and compared, ${copied.value.journalRows} journal rows verified on both sides`;
      report(context, { rows, journal_rows: copied.value.journalRows }, text);
      return 0;
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

function refusalText(refusal: NotCopied): string {
  switch (refusal.reason) {
    case 'target_not_empty':
      return 'the target is not empty';
    case 'exchanges_open':
      return `${refusal.count} exchanges are open: stop the gateways first`;
    case 'source_unsound':
    case 'copy_unsound': {
      const [first] = refusal.differences;
      const where = refusal.reason === 'source_unsound' ? 'source' : 'copy';
      return `the ledger of the ${where} has ${refusal.differences.length} differences, such as: ${first?.what} ${first?.subject}`;
    }
    case 'rows_differ':
      return `a row was not copied as it is: ${refusal.expected.slice(0, 200)} became ${refusal.found.slice(0, 200)}`;
  }
}
