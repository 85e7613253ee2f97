/**
 * Text of a configuration file (JSON with comments) to a checked, frozen {@link Config}. Every problem is collected and named by
 * its path. Reads neither files nor the environment itself.
 */
import { isObject } from '../../codecs/canonical/json.ts';
import { type BuildOptions, buildConfig } from './build-config.ts';
import { checkWritten, hasShape, withDefaults } from './check-shape.ts';
import type { Config } from './config.ts';
import { ConfigError, type ConfigProblem } from './config-error.ts';
import type { WrittenConfig } from './schema.ts';
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
    const config = build(value, options, problems);
    if (config !== undefined && problems.length === 0) return config;
  } else {
    const shape = problems.filter((problem) => !unresolved.has(problem));
    problems.push(...problemsOfTheRest(value, options, shape));
  }
  // The value of a missing secret is unknown, so other problems of the same place are left out.
  throw new ConfigError(problems.filter((problem) => unresolved.has(problem) || !places.has(problem.path)));
}

/** Undefined where it has problems, which are appended. */
function build(value: WrittenConfig, options: ParseOptions, problems: ConfigProblem[]): Config | undefined {
  checkWritten(value, problems);
  try {
    return buildConfig(withDefaults(value), options);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    problems.push(...error.problems);
    return undefined;
  }
}

/** The section, the entry of a list or of a record, and the member of it that a path begins with. */
const PLACE = /^([A-Za-z_$][\w$]*)(?:(?:\[(\d+)\]|\.([A-Za-z_$][\w$]*)|\[("(?:[^"\\]|\\.)*")\])(?:\.([A-Za-z_$][\w$]*))?)?/;

function placeOf(path: string) {
  const [whole = '', section = '', index, word, quoted, member] = PLACE.exec(path) ?? [];
  return { whole, section, index, name: word ?? (quoted === undefined ? undefined : String(JSON.parse(quoted))), member };
}

/**
 * Rules that span several keys, checked of what has its shape: a misspelt key hides no other mistake. Members of the wrong shape
 * are left out, or the whole entry where it cannot be without them, and so is every mistake that only follows from them.
 */
function problemsOfTheRest(value: unknown, options: ParseOptions, found: readonly ConfigProblem[]): ConfigProblem[] {
  if (!isObject(value) || !Array.isArray(value['channels']) || !isObject(value['models'])) return [];
  const rest: Record<string, unknown> = { ...value };
  const channels = new Map<number, unknown>(value['channels'].entries());
  const models = new Map<string, unknown>(Object.entries(value['models']));
  const gone: string[] = [];
  for (const { path } of found) {
    const { whole, section, index, name, member } = placeOf(path);
    const isEntry = (section === 'channels' && index !== undefined) || (section === 'models' && name !== undefined);
    if (section === '' || (!isEntry && section in { channels, models })) return [];
    gone.push(isEntry ? whole : section);
    if (!isEntry) delete rest[section];
    else if (index !== undefined) channels.set(Number(index), without(channels.get(Number(index)), member));
    else models.set(name ?? '', without(models.get(name ?? ''), member));
  }
  for (const [index, channel] of channels) if (!hasShape({ channels: [channel], models: {} }, [])) channels.delete(index);
  // A model keeps its name, which Channels refer to.
  for (const [name, model] of models) if (!hasShape({ channels: [], models: { [name]: model } }, [])) models.set(name, {});
  const remains: unknown = { ...rest, channels: [...channels.values()], models: Object.fromEntries(models) };
  if (!hasShape(remains, [])) return [];
  const problems: ConfigProblem[] = [];
  build(remains, options, problems);
  const kept = [...channels.keys()];
  return problems.flatMap(({ path, message }) => {
    const at = path.replace(/^channels\[(\d+)\]/, (_, index: string) => `channels[${kept[Number(index)]}]`);
    return gone.some((place) => at === place || (at.startsWith(place) && /[.[]/.test(at.charAt(place.length))))
      ? []
      : [{ path: at, message }];
  });
}

/** Nothing where the entry itself is wrong. */
function without(entry: unknown, member: string | undefined): unknown {
  if (member === undefined || !isObject(entry)) return undefined;
  const { [member]: _left, ...rest } = entry;
  return rest;
}
