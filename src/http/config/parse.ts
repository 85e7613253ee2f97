/**
 * Text of a configuration file (JSON with comments) to a checked, frozen {@link Config}. Every problem is collected and named by its
 * path. Reads neither files nor the environment itself.
 */
import { type BuildOptions, buildConfig } from './build-config.ts';
import { checkWritten, hasShape, withDefaults } from './check-shape.ts';
import type { Config } from './config.ts';
import { ConfigError, type ConfigProblem } from './config-error.ts';
import { readJsonc } from './read-jsonc.ts';
import { resolveSecrets, type SecretSources } from './secrets.ts';

export type ParseOptions = BuildOptions & SecretSources;

/** Throws {@link ConfigError} with every problem found. */
export function parseConfig(text: string, options: ParseOptions): Config {
  const problems: ConfigProblem[] = [];
  const value = resolveSecrets(readJsonc(text), options, problems);
  const unresolved = new Set(problems);
  const places = new Set(problems.map(({ path }) => path));
  if (hasShape(value, problems)) {
    checkWritten(value, problems);
    try {
      const config = buildConfig(withDefaults(value), options);
      if (problems.length === 0) return config;
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      problems.push(...error.problems);
    }
  }
  // The value of a missing secret is unknown, so other problems of the same place are left out.
  throw new ConfigError(problems.filter((problem) => unresolved.has(problem) || !places.has(problem.path)));
}
