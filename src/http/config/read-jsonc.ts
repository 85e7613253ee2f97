/** Parses a configuration file: JSON with comments and trailing commas. Knows no key of it. */
import { type ParseError, parseTree, type Node as JsonNode, printParseErrorCode } from 'jsonc-parser';
import { ConfigError, type ConfigProblem, joinPath } from './config-error.ts';

/** Throws {@link ConfigError}, also for a key that occurs twice, since one of the two would be lost. */
export function readJsonc(text: string): unknown {
  try {
    return read(text);
  } catch (error) {
    // The parser is recursive, and so are the checks that follow.
    if (!(error instanceof RangeError)) throw error;
    throw new ConfigError([{ path: '', message: 'not valid JSON: it is nested too deeply' }]);
  }
}

function read(text: string): unknown {
  const errors: ParseError[] = [];
  const root = parseTree(text.replace(/^\uFEFF/, ''), errors, { allowTrailingComma: true });
  const first = errors[0];
  if (first !== undefined || root === undefined) {
    const line = text.slice(0, first?.offset ?? 0).split('\n').length;
    const what = first === undefined ? 'the file is empty' : `line ${line}: ${printParseErrorCode(first.error)}`;
    throw new ConfigError([{ path: '', message: `not valid JSON: ${what}` }]);
  }
  const problems: ConfigProblem[] = [];
  const value = valueAt(root, [], problems);
  if (problems.length > 0) throw new ConfigError(problems);
  return value;
}

function valueAt(node: JsonNode, path: readonly (string | number)[], problems: ConfigProblem[]): unknown {
  if (node.type === 'array') return (node.children ?? []).map((child, index) => valueAt(child, [...path, index], problems));
  if (node.type !== 'object') return node.value;
  const entries = new Map<string, unknown>();
  for (const property of node.children ?? []) {
    const [key, value] = property.children ?? [];
    if (key === undefined || value === undefined) continue;
    const name = String(key.value);
    if (entries.has(name)) problems.push({ path: joinPath([...path, name]), message: 'is given twice' });
    entries.set(name, valueAt(value, [...path, name], problems));
  }
  return Object.fromEntries(entries);
}
