/**
 * Loaded ahead of a test file (`--import`), also in what it starts: the module that `MIZU_MUTANT` names is loaded with the text
 * that it holds.
 */
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

const { MIZU_MUTANT } = process.env;
if (MIZU_MUTANT !== undefined) {
  const { url, source }: { url: string; source: string } = JSON.parse(readFileSync(MIZU_MUTANT, 'utf8'));
  registerHooks({
    load: (wanted, context, next) =>
      wanted === url ? { format: 'module-typescript', source, shortCircuit: true } : next(wanted, context),
  });
}
