/**
 * The words behind a script's name, read strictly: a script that runs for minutes must not run with an option that it does not
 * have.
 */
import { parseArgs, type ParseArgsConfig } from 'node:util';

/**
 * What {@link parseArgs} reads. `--help` prints the usage; what the script does not take ends it with the usage and exit code 2.
 */
export function scriptOptions<const Options extends ParseArgsConfig>(usage: string, options: Options) {
  const words = process.argv.slice(2);
  if (words.includes('--help') || words.includes('-h')) {
    console.log(`usage: ${usage}`);
    process.exit(0);
  }
  try {
    return parseArgs<Options>(options);
  } catch (error) {
    misused(usage, error instanceof Error ? error.message : String(error));
  }
}

/** A number of at least `least`; anything else ends the script. */
export function numberOption(usage: string, name: string, text: string, least = 1): number {
  const value = Number(text);
  return text.trim() !== '' && value >= least && Number.isFinite(value)
    ? value
    : misused(usage, `--${name} must be a number from ${least}`);
}

/** Ends the script: what was asked makes no sense. */
export function misused(usage: string, why: string): never {
  console.error(`${why}\nusage: ${usage}`);
  process.exit(2);
}
