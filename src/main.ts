/**
 * The entry, and the only file that reads the environment and argv. What was compiled is kept beside the dependencies: every start but the
 * first takes a third of the time. Where that folder cannot be written, nothing is kept.
 */
import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/mizu', import.meta.url)));

// Imported only now, since what is imported above is compiled before the cache is there.
const { run } = await import('./command-line.ts');
process.exitCode = await run(process.argv.slice(2), process.env);
