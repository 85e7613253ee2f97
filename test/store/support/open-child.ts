/** A process that opens the store in the folder that it is given, and prints what came of it. */
import { openLmdbStore } from '../../../src/store/lmdb/open.ts';
import { StoreError } from '../../../src/store/store-error.ts';
import { FakeClock, options } from './store.ts';

const [, , path = ''] = process.argv;
try {
  const store = await openLmdbStore(options(path, { clock: new FakeClock(), ballastBytes: 0 }));
  await store.close();
  process.stdout.write('opened\n');
} catch (error) {
  if (!(error instanceof StoreError)) throw error;
  process.stdout.write(`${error.code}: ${error.message}\n`);
}
