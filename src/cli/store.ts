/** `mizu store migrate`, `mizu store copy --from PLACE --to PLACE`. A place is a folder or a `postgres://` address. */
import { type Static, Type } from 'typebox';
import type { Archive } from '../store/archive.ts';
import { copyStore, type NotCopied } from '../store/copy.ts';
import type { Store } from '../store/store.ts';
import { Nothing } from '../http/admin/requests.ts';
import { InputError, RefusedError } from '../http/admin/refusals.ts';
import { type Verb, type VerbContext, verb } from './verb.ts';

/** What the verb needs of the store room; the entry knows the engines. */
export interface StorePlaces {
  /** False for a folder that holds no store. */
  exists(place: string): boolean;
  open(place: string): Promise<Store>;
  openArchive(place: string): Promise<Archive>;
  migrate(url: string): Promise<{ readonly from: number; readonly to: number; readonly applied: readonly string[] }>;
}

const CopyStore = Type.Object({ from: Type.String(), to: Type.String() }, { additionalProperties: false });

export function storeVerbs(places: StorePlaces): readonly Verb[] {
  return [
    verb({
      name: 'store migrate',
      usage: 'migrate',
      options: Nothing,
      run: (context) => migrate(context, places),
      text: ({ from, to, applied }) =>
        applied.length === 0 ? `the store has schema ${to} already` : `from schema ${from} to ${to}: ${applied.join(', ')}`,
    }),
    verb({
      name: 'store copy',
      usage: 'copy --from PLACE --to PLACE   a place is a folder or postgres://…',
      options: CopyStore,
      run: (_context, options) => copy(options, places),
      text: ({ rows, journal_rows }) => {
        const count = Object.values(rows).reduce((sum, some) => sum + some, 0);
        return `${count} rows copied and compared, ${journal_rows} journal rows verified on both sides`;
      },
    }),
  ];
}

async function migrate(context: VerbContext, places: StorePlaces): ReturnType<StorePlaces['migrate']> {
  const { storeUrl } = context.config();
  if (storeUrl === undefined) throw new RefusedError('the store is a folder: it needs no migration');
  return await places.migrate(storeUrl);
}

/** How many rows of each table were copied, and how many of the journal were verified. */
interface Copied {
  readonly rows: Readonly<Record<string, number>>;
  readonly journal_rows: number;
}

async function copy({ from, to }: Static<typeof CopyStore>, places: StorePlaces): Promise<Copied> {
  if (from === to) throw new InputError((name) => `${name('from')} and ${name('to')} are the same place`);
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
      return { rows: Object.fromEntries(copied.value.rows), journal_rows: copied.value.journalRows };
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
