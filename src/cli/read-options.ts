/** Reads what was typed behind a verb into the object that its schema describes. The one place where options are parsed. */
import type { Static, TObject } from 'typebox';
import { Value } from 'typebox/value';
import { isObject, type JsonObject } from '../codecs/canonical/json.ts';
import type { NameOf } from '../http/admin/refusals.ts';
import { UsageError } from './verb.ts';

/** What parsing needs of a verb. */
export interface OptionsOf<Input extends TObject> {
  /** As it is typed: `keys create`. */
  readonly name: string;
  readonly options: Input;
  /** The members that are typed as arguments, in their order. */
  readonly arguments?: readonly string[];
  /** Flags beside those of the schema: the member that each sets to false. */
  readonly negations?: Readonly<Record<string, string>>;
}

/** Takes a restriction away. */
const NONE = 'none';

/** Members within members, by the option that sets them. Every other one is its own name with hyphens. */
const NESTED: Readonly<Record<string, string>> = {
  'limits.total': 'limit-total',
  'limits.hourly': 'limit-hourly',
  'limits.daily': 'limit-daily',
  'rateLimits.requestsPerMinute': 'requests-per-minute',
  'rateLimits.tokensPerMinute': 'tokens-per-minute',
  'rateLimits.maxConcurrency': 'max-concurrency',
};

/** Arguments whose name is not their member's. */
const ARGUMENTS: Readonly<Record<string, string>> = { account: 'NAME', amount: 'USD' };

/** A member that one option sets. */
interface Leaf {
  /** `limits.total`. */
  readonly member: string;
  readonly schema: JsonObject;
  readonly isOptional: boolean;
}

function leavesOf(schema: unknown, within = ''): Leaf[] {
  const properties = isObject(schema) && isObject(schema['properties']) ? schema['properties'] : {};
  const required = isObject(schema) && Array.isArray(schema['required']) ? schema['required'] : [];
  return Object.entries(properties).flatMap(([name, own]): Leaf[] => {
    if (!isObject(own)) return [];
    const member = `${within}${name}`;
    if (own['type'] === 'object') return leavesOf(own, `${member}.`);
    return [{ member, schema: own, isOptional: within !== '' || !required.includes(name) }];
  });
}

const optionName = (member: string): string =>
  NESTED[member] ?? member.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
const argumentName = (member: string): string => ARGUMENTS[member] ?? member.toUpperCase();

/** The names of a verb's options, and whether each is a flag. */
export function optionsOf({
  options,
  arguments: typed = [],
  negations = {},
}: OptionsOf<TObject>): Map<string, 'string' | 'boolean'> {
  const named = leavesOf(options).filter(({ member }) => !typed.includes(member));
  return new Map([
    ...named.map(({ member, schema }) => [optionName(member), schema['type'] === 'boolean' ? 'boolean' : 'string'] as const),
    ...Object.keys(negations).map((name) => [name, 'boolean'] as const),
  ]);
}

/** How a verb's members are called on the command line: `--limit-total`, `USD`. */
export function namesOf({ arguments: typed = [] }: OptionsOf<TObject>): NameOf {
  return (member) => (typed.includes(member) ? argumentName(member) : `--${optionName(member)}`);
}

/** Throws UsageError for anything that the verb does not have, that is missing, or that is not of its kind. */
export function readOptions<Input extends TObject>(
  verb: OptionsOf<Input>,
  args: readonly string[],
  values: Readonly<Record<string, unknown>>,
): Static<Input> {
  const { name, options: schema, arguments: typed = [], negations = {} } = verb;
  const extra = args[typed.length];
  if (extra !== undefined) throw new UsageError(`${name}: unexpected argument ${JSON.stringify(extra)}`);
  const known = optionsOf(verb);
  for (const [option, value] of Object.entries(values)) {
    if (value !== undefined && !known.has(option)) throw new UsageError(`${name} has no option --${option}`);
  }
  const read = new Map<string, unknown>();
  const shown = namesOf(verb);
  for (const leaf of leavesOf(schema)) {
    const { member } = leaf;
    const at = typed.indexOf(member);
    const given = at < 0 ? values[optionName(member)] : args[at] || undefined;
    if (given === undefined && !leaf.isOptional) throw new UsageError(`${shown(member)} is missing`);
    if (given !== undefined) read.set(member, readValue(leaf, given, shown(member)));
  }
  for (const [flag, member] of Object.entries(negations)) {
    if (values[flag] !== true) continue;
    if (read.has(member)) throw new UsageError(`${shown(member)} and --${flag} exclude each other`);
    read.set(member, false);
  }
  const options = nested(read);
  if (Value.Check(schema, options)) return options;
  const [error] = Value.Errors(schema, options);
  const member = error?.instancePath.slice(1).replaceAll('/', '.') ?? '';
  const words = error?.keyword === 'enum' ? `must be one of ${error.params.allowedValues.join(', ')}` : error?.message;
  throw new UsageError(`${shown(member)} ${words ?? 'does not fit'}`);
}

/** The value of the kind that the schema asks for. */
function readValue({ schema }: Leaf, given: unknown, shown: string): unknown {
  if (typeof given !== 'string') return given;
  const alternatives = Array.isArray(schema['anyOf']) ? schema['anyOf'].filter(isObject) : [];
  const mayBeNone = alternatives.some(({ type }) => type === 'null');
  if (mayBeNone && given === NONE) return null;
  const words = alternatives.flatMap(({ const: word }) => (typeof word === 'string' ? [word] : []));
  if (words.length > 0) {
    if (!words.includes(given)) throw new UsageError(`${shown} must be one of ${words.join(', ')}`);
    return given;
  }
  const kind = mayBeNone ? (alternatives.find(({ type }) => type !== 'null') ?? schema) : schema;
  if (kind['type'] === 'array') return listOf(given, shown);
  if (kind['type'] === 'integer') return countOf(given, kind, shown, mayBeNone);
  return given;
}

/** Comma-separated entries. An empty entry is refused: a forgotten value must not lift a restriction. */
function listOf(text: string, shown: string): string[] {
  const entries = text.split(',').map((entry) => entry.trim());
  const empty = entries.indexOf('');
  if (empty >= 0) throw new UsageError(entries.length === 1 ? `${shown} is empty` : `${shown}[${empty}] is empty`);
  return entries;
}

function countOf(text: string, { minimum, maximum }: JsonObject, shown: string, mayBeNone: boolean): number {
  const count = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (count >= Number(minimum) && count <= Number(maximum)) return count;
  const range = mayBeNone ? `a whole number from ${minimum} to ${maximum}, or none` : `${minimum} to ${maximum}`;
  throw new UsageError(`${shown} must be ${range}`);
}

/** Members by their paths as objects within objects. */
function nested(members: ReadonlyMap<string, unknown>): JsonObject {
  const root: JsonObject = {};
  for (const [member, value] of members) {
    const [first = '', second] = member.split('.');
    if (second === undefined) Object.assign(root, { [first]: value });
    else Object.assign(root, { [first]: { ...(isObject(root[first]) ? root[first] : {}), [second]: value } });
  }
  return root;
}
