/**
 * Before `npm pack`: src/ as JavaScript in dist/, because Node strips no types below node_modules. Types become spaces, so that
 * lines and columns of a stack trace are those of the sources.
 */
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** A module beside the file that names it: `from './x.ts'`, `import('./x.ts')`. */
const NEIGHBOUR = /((?:\bfrom|\bimport)\s*\(?\s*'\.{1,2}\/[^'\n]+)\.ts'/g;

rmSync(join(ROOT, 'dist'), { recursive: true, force: true });
for (const file of globSync('**/*.ts', { cwd: join(ROOT, 'src') })) {
  const to = join(ROOT, 'dist', file.replace(/\.ts$/, '.js'));
  mkdirSync(dirname(to), { recursive: true });
  const text = stripTypeScriptTypes(readFileSync(join(ROOT, 'src', file), 'utf8'));
  writeFileSync(to, text.replaceAll(NEIGHBOUR, "$1.js'"));
}
