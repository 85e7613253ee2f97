/**
 * The entry, and the only file that reads the environment and argv. What was compiled is kept beside the dependencies, which halves every
 * start but the first. Where that folder cannot be written, nothing is kept.
 */
import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/mizu', import.meta.url)));

// A reload that is asked for while a gateway starts would end it, and for a supervisor that is a good end: the file is being read anyway.
if (process.argv.includes('serve')) process.on('SIGHUP', () => undefined);

// Imported only now, since what is imported above is compiled before the cache is there.
const { run } = await import('./command-line.ts');
process.exitCode = await run(process.argv.slice(2), process.env);
