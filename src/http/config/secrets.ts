/**
 * `${ENV_NAME}` and `${file:/path}` inside any string of the configuration. `$${` is a literal `${`. Values are resolved at load
 * and trimmed, since files with secrets often end in a line feed. A missing or empty value is a problem that names the key and
 * the variable, never a value.
 */
import type { ConfigProblem } from './config-error.ts';
import { joinPath } from './config-error.ts';

export interface SecretSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Throws when the file cannot be read. */
  readFile(path: string): string;
}

const REFERENCE = /\$\$\{|\$\{([^}]*)\}/g;

/** A copy with every reference replaced; problems are appended. */
export function resolveSecrets(value: unknown, sources: SecretSources, problems: ConfigProblem[]): unknown {
  return resolve(value, [], sources, problems);
}

function resolve(value: unknown, path: readonly (string | number)[], sources: SecretSources, problems: ConfigProblem[]): unknown {
  if (typeof value === 'string') return resolveText(value, path, sources, problems);
  if (Array.isArray(value)) return value.map((entry, index) => resolve(entry, [...path, index], sources, problems));
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(
      Object.entries(value).map(([key, entry]) => [key, resolve(entry, [...path, key], sources, problems)]),
    );
  }
  return value;
}

function resolveText(
  text: string,
  path: readonly (string | number)[],
  sources: SecretSources,
  problems: ConfigProblem[],
): string {
  return text.replace(REFERENCE, (whole: string, name: string | undefined) => {
    if (name === undefined) return '${';
    const found = lookUp(name, sources);
    if (typeof found === 'string' && found !== '') return found;
    problems.push({ path: joinPath(path), message: typeof found === 'string' ? `${whole} is empty` : found.problem });
    return whole;
  });
}

function lookUp(name: string, sources: SecretSources): string | { readonly problem: string } {
  if (name.startsWith('file:')) {
    const file = name.slice('file:'.length);
    try {
      return sources.readFile(file).trim();
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
      return { problem: `the file ${file} cannot be read${code}` };
    }
  }
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return { problem: `\${${name}} is neither an environment variable nor file:/path` };
  const value = Object.hasOwn(sources.env, name) ? sources.env[name] : undefined;
  return value?.trim() ?? { problem: `the environment variable ${name} is not set` };
}
