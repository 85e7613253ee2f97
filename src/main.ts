/**
 * The entry point, and the only file that reads the environment and argv. Compiled code is cached beside the dependencies, which halves the
 * time of every start but the first. Where that folder is not writable there is no cache.
 */
import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/mizu', import.meta.url)));

// Without a listener a SIGHUP during the start would end the process. It can be ignored: the configuration is about to be read anyway.
if (process.argv.includes('serve')) process.on('SIGHUP', () => undefined);

// Imported dynamically, because static imports are compiled before the cache is enabled.
const { run } = await import('./cli/command-line.ts');
process.exitCode = await run(process.argv.slice(2), process.env);
