/**
 * `mizu store …`: stores brought to this version, copied, backed up and restored. A place is a folder or a `postgres://` address.
 */
import { isAbsolute, relative, resolve, sep } from 'node:path';
import { type Static, Type } from 'typebox';
import type { Archive, BackupSource } from '../store/archive.ts';
import { copyStore, type NotCopied } from '../store/copy.ts';
import { makeFolder } from '../store/make-folder.ts';
import { isDatabaseUrl } from '../store/open-store.ts';
import type { Store } from '../store/store.ts';
import { ConfigError } from '../http/config/config-error.ts';
import { BackUpStore, Nothing, RestoreStore } from '../http/admin/requests.ts';
import { InputError, RefusedError } from '../http/admin/refusals.ts';
import { type Verb, type VerbContext, verb } from './verb.ts';

/** What the verb needs of the store room; the entry knows the engines. */
export interface StorePlaces {
  /** True for a folder that is not there, or empty. */
  isVacant(folder: string): boolean;
  /** False for a folder that holds no store. */
  exists(place: string): boolean;
  /**
   * `local`: the folder in which gateways of this machine keep what waits for a database. Absent: the default of `store.path`.
   */
  open(place: string, local?: string): Promise<Store>;
  openArchive(place: string, local?: string): Promise<Archive>;
  migrate(url: string): Promise<{ readonly from: number; readonly to: number; readonly applied: readonly string[] }>;
}

const CopyStore = Type.Object({ from: Type.String(), to: Type.String() }, { additionalProperties: false });

export function storeVerbs(places: StorePlaces): readonly Verb[] {
  return [
    verb({
      name: 'store migrate',
      usage: 'migrate',
      does: 'Brings a database to the schema of this version.',
      options: Nothing,
      run: (context) => migrate(context, places),
      text: ({ from, to, applied }) =>
        applied.length === 0 ? `the store has schema ${to} already` : `from schema ${from} to ${to}: ${applied.join(', ')}`,
    }),
    verb({
      name: 'store copy',
      usage: 'copy --from PLACE --to PLACE',
      does: 'Copies a store into an empty place and compares both. A place is a folder or `postgres://…`.',
      options: CopyStore,
      run: (context, options) => copy(context, options, places),
      text: ({ rows, journal_rows }) => {
        const count = Object.values(rows).reduce((sum, some) => sum + some, 0);
        return `${count} rows copied and compared, ${journal_rows} journal rows verified on both sides`;
      },
    }),
    verb({
      name: 'store backup',
      usage: 'backup FOLDER',
      does: 'Copies one moment of the store into a new folder while gateways run, and verifies the copy.',
      options: BackUpStore,
      arguments: ['folder'],
      run: (context, options) => backUpConfigured(context, options, places),
      text: ({ folder, journalRows, head, openExchanges }) =>
        [
          `backed up into ${folder}: ${journalRows} journal rows, which add up`,
          `head ${head}: keep it elsewhere, ledger verify --head compares it`,
          ...(openExchanges === 0 ? [] : [`${openExchanges} exchanges were open and are not in it`]),
        ].join('\n'),
    }),
    verb({
      name: 'store restore',
      usage: 'restore FOLDER [--to PLACE]',
      does: 'Copies a backup into an empty place, by default that of the configuration, and compares both.',
      options: RestoreStore,
      arguments: ['folder'],
      run: (context, options) => restore(context, options, places),
      text: ({ rows, journal_rows }) => {
        const count = Object.values(rows).reduce((sum, some) => sum + some, 0);
        return `${count} rows restored and compared, ${journal_rows} journal rows verified`;
      },
    }),
  ];
}

async function migrate(context: VerbContext, places: StorePlaces): ReturnType<StorePlaces['migrate']> {
  const { storeUrl } = context.config();
  if (storeUrl === undefined) throw new RefusedError('the store is a folder: it needs no migration');
  return await places.migrate(storeUrl);
}

/** What was backed up, from the ledger of the copy. */
interface BackedUp {
  readonly folder: string;
  readonly journalRows: number;
  /** `SEQ:HASH`. */
  readonly head: string;
  /** When it began. They are not in it: what they cost is known when they end. */
  readonly openExchanges: number;
}

/**
 * {@link backUp} for whoever asks a gateway over the network: of its open store, and only below the folder of `store.backups`.
 */
export async function backUpBelow(
  context: VerbContext,
  { folder }: Static<typeof BackUpStore>,
  places: StorePlaces,
): Promise<BackedUp> {
  const { backupsPath } = context.config();
  const inside = relative(backupsPath, resolve(backupsPath, folder));
  if (inside === '' || isAbsolute(inside) || inside.split(sep)[0] === '..')
    throw new RefusedError(
      `backups are made below ${backupsPath} (store.backups): name a folder there`,
      'invalid',
      'outside_backups',
    );
  const { backup } = await context.store();
  return await backUp(resolve(backupsPath, inside), places, (copyTo) => copyTo(backup));
}

/** {@link backUp} of the configured store, whoever else has it open. */
async function backUpConfigured(
  context: VerbContext,
  { folder }: Static<typeof BackUpStore>,
  places: StorePlaces,
): Promise<BackedUp> {
  const { storeUrl, storePath } = context.config();
  if (storeUrl === undefined && !places.exists(storePath))
    throw new RefusedError(`there is no store at ${storePath}`, 'unknown', 'no_store');
  return await backUp(resolve(folder), places, async (copyTo) => {
    const archive = await places.openArchive(storeUrl ?? storePath, storePath);
    try {
      return await copyTo(archive);
    } finally {
      await archive.close();
    }
  });
}

/**
 * What the file system says against a folder that was named (no name of a folder, too long, below a file, not ours to write) is a
 * refusal.
 */
function asNamed<T>(folder: string, use: () => T): T {
  try {
    return use();
  } catch (thrown) {
    if (!(thrown instanceof Error) || !('code' in thrown)) throw thrown;
    throw new RefusedError(`${JSON.stringify(folder)} cannot be used: ${String(thrown.code)}`, 'invalid', 'bad_folder');
  }
}

/**
 * Copies one moment of a store, whoever writes meanwhile, and verifies the copy. `withSource` finds the store and hands it on.
 */
async function backUp(
  folder: string,
  places: StorePlaces,
  withSource: (copyTo: (backup: BackupSource) => Promise<number>) => Promise<number>,
): Promise<BackedUp> {
  if (!asNamed(folder, () => places.isVacant(folder)))
    throw new RefusedError(`${folder} is there and not empty: name a new folder`, 'conflict', 'not_empty');
  asNamed(folder, () => makeFolder(folder));
  const openExchanges = await withSource(async (backup) => {
    const count = await backup.openExchanges();
    await backup.backUp(folder, places.openArchive);
    return count;
  });
  const copy = await places.open(folder);
  try {
    const { differences, rows: journalRows } = await copy.ledger.verify();
    if (differences.length > 0)
      throw new RefusedError(refusalText({ reason: 'copy_unsound', differences }), 'conflict', 'copy_unsound');
    const { seq, hash } = await copy.ledger.head();
    return { folder, journalRows, head: `${seq}:${hash}`, openExchanges };
  } finally {
    await copy.close();
  }
}

async function restore(context: VerbContext, { folder, to }: Static<typeof RestoreStore>, places: StorePlaces): Promise<Copied> {
  if (!places.exists(folder)) throw new RefusedError(`there is no store in ${folder}`, 'unknown', 'no_store');
  let place = to;
  if (place === undefined) {
    const { storeUrl, storePath } = context.config();
    place = storeUrl ?? storePath;
  }
  try {
    return await copy(context, { from: folder, to: place }, places);
  } catch (error) {
    if (!(error instanceof RefusedError) || error.code !== 'target_not_empty') throw error;
    const advice = 'stop the gateways that use it and move it away, or name another place with --to';
    throw new RefusedError(
      `there is a store in the place to restore to, and it stays as it is: ${advice}`,
      'conflict',
      error.code,
    );
  }
}

/** How many rows of each table were copied, and how many of the journal were verified. */
interface Copied {
  readonly rows: Readonly<Record<string, number>>;
  readonly journal_rows: number;
}

/**
 * Where gateways of this machine keep what waits for the database: it belongs to what is copied. Undefined for a folder, which
 * holds it itself, and where there is no configuration. Throws ConfigError for one that cannot be read: what waits would be lost.
 */
function localOf(context: VerbContext, from: string): string | undefined {
  if (!isDatabaseUrl(from)) return undefined;
  try {
    return context.config().storePath;
  } catch (error) {
    if (error instanceof ConfigError && error.isMissing) return undefined;
    throw error;
  }
}

/** No gateway ever opened it, and nothing was copied into it. */
async function isEmptyStore(place: string, local: string | undefined, places: StorePlaces): Promise<boolean> {
  const archive = await places.openArchive(place, local);
  try {
    return await archive.isEmpty();
  } finally {
    await archive.close();
  }
}

async function copy(context: VerbContext, { from, to }: Static<typeof CopyStore>, places: StorePlaces): Promise<Copied> {
  if (from === to) throw new InputError((name) => `${name('from')} and ${name('to')} are the same place`);
  if (!places.exists(from)) throw new RefusedError('there is no store to copy at --from');
  const local = localOf(context, from);
  // Of a backup that was killed as it began: opened as a store it would be made one, and the copy of nothing would be good.
  if (await isEmptyStore(from, local, places))
    throw new RefusedError('there is nothing in the store to copy', 'unknown', 'no_store');
  // Opening the store settles what a dead gateway left, and closes its exchanges. Those of a running one stay open, and the
  // copy is refused.
  const store = await places.open(from, local);
  await store.close();
  const source = await places.openArchive(from, local);
  try {
    const target = await places.openArchive(to);
    try {
      const copied = await copyStore(source, target);
      if (!copied.ok) throw new RefusedError(refusalText(copied.refusal), 'conflict', copied.refusal.reason);
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
