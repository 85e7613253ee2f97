/**
 * From here on a Node that runs TypeScript. Compiled code is cached beside the dependencies, which halves the time of every start
 * but the first. Where that folder is not writable there is no cache.
 */
import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

/** Gives the exit code. */
export async function enter(words: string[], env: NodeJS.ProcessEnv): Promise<number> {
  enableCompileCache(fileURLToPath(new URL('../../node_modules/.cache/mizu', import.meta.url)));
  // Imported dynamically, because static imports are compiled before the cache is enabled.
  const { run } = await import('./command-line.ts');
  return await run(words, env);
}
