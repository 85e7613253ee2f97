/**
 * Loaded ahead of a suite (`--import`): properties take the same inputs in every run, so that what fails in the gate fails in the
 * next run, too. `MIZU_SEED` is another seed, or `random`: what a lucky run finds becomes a case. A file that is run by itself
 * draws anew each time.
 */
import fc from 'fast-check';

/** Any number will do: the inputs of a commit's gate are then known. */
const SEED = 20_261_124;

const wanted = process.env['MIZU_SEED'] ?? String(SEED);
if (wanted === 'random') delete process.env['MIZU_SEED'];
else {
  // Samples that are no properties read it themselves.
  process.env['MIZU_SEED'] = wanted;
  fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number.parseInt(wanted, 10) });
}
