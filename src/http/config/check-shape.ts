/** Checks a configuration against its schema. Each problem names the path of the key and what is allowed there. */
import type { TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { Compile } from 'typebox/compile';
import { Settings } from 'typebox/system';
import { isObject } from '../../codecs/canonical/json.ts';
import { CHANNEL_SCHEMAS, channelSchema, platformsOf } from './channel-schema.ts';
import { type ConfigProblem, partsOf, pathOfPointer } from './config-error.ts';
import { suggestKey } from './suggest-key.ts';
import { CONFIG_SCHEMA, type ConfigFile, MODEL_SCHEMA, type WrittenConfig } from './schema.ts';

interface Checked {
  readonly schema: unknown;
  Check(value: unknown): boolean;
  Errors(value: unknown): { keyword: string; instancePath: string; message: string; params: object }[];
}

// The library's default is eight errors; operators want to see all of them at once.
Settings.Set({ maxErrors: 1000 });

const ROOT = checkedBy(CONFIG_SCHEMA);
const TYPES = Object.keys(CHANNEL_SCHEMAS);
/** Compiled once they are needed: few files have Channels of every kind. */
const COMPILED = new Map<TSchema, Checked>();

function checkedBy(schema: TSchema): Checked {
  const compiled = Compile(schema);
  return { schema, Check: (value) => compiled.Check(value), Errors: (value) => compiled.Errors(value) };
}

/**
 * True when the value has the shape of the schema; otherwise the problems are appended. Channels are checked one by one against
 * the schema of their own type, so that a problem names the key and not eight alternatives.
 */
export function hasShape(value: unknown, problems: ConfigProblem[]): value is WrittenConfig {
  const before = problems.length;
  const channels = isObject(value) ? value['channels'] : undefined;
  collect(ROOT, isObject(value) && Array.isArray(channels) ? { ...value, channels: [] } : value, '', problems);
  for (const [index, channel] of Array.isArray(channels) ? channels.entries() : []) {
    const schema = schemaOf(channel, `channels[${index}]`, problems);
    if (schema !== undefined) collect(schema, channel, `/channels/${index}`, problems);
  }
  return problems.length === before;
}

/** The schema of an entry by its type and platform; undefined, with a problem, for a pair that does not exist. */
function schemaOf(channel: unknown, at: string, problems: ConfigProblem[]): Checked | undefined {
  const { type, platform } = isObject(channel) ? channel : {};
  if (typeof type !== 'string' || !TYPES.includes(type)) {
    problems.push({ path: `${at}.type`, message: `must be one of ${TYPES.join(', ')}` });
    return undefined;
  }
  if (platform !== undefined && (typeof platform !== 'string' || !platformsOf(type).includes(platform))) {
    const served = platformsOf(type);
    const message =
      served.length === 0
        ? `is not possible: no platform serves ${type}`
        : `must be ${served.length > 1 ? 'one of ' : ''}${served.join(', ')} for ${type}`;
    problems.push({ path: `${at}.platform`, message });
    return undefined;
  }
  const schema = channelSchema(type, platform);
  if (schema === undefined) return undefined;
  const known = COMPILED.get(schema);
  if (known !== undefined) return known;
  const compiled = checkedBy(schema);
  COMPILED.set(schema, compiled);
  return compiled;
}

/**
 * Rules about what was written and what was not, which cannot be seen any more when the defaults are filled in. Problems are
 * appended.
 */
export function checkWritten({ channels = [] }: WrittenConfig, problems: ConfigProblem[]): void {
  for (const [index, { options = {} }] of channels.entries()) {
    for (const name of ['max_queue', 'queue_ms'] as const) {
      if (options[name] !== undefined && options.max_concurrency === undefined)
        problems.push({ path: `channels[${index}].options.${name}`, message: 'has no meaning without max_concurrency' });
    }
  }
}

/** The file with every default that the schema names; a Channel gets those of its own type. The given one is left as it is. */
export function withDefaults(file: WrittenConfig): ConfigFile;
export function withDefaults({ channels = [], models = {}, ...rest }: WrittenConfig): object {
  const fill = (schema: TSchema, value: unknown): unknown => Value.Default(schema, structuredClone(value));
  const filled = fill(CONFIG_SCHEMA, rest);
  if (!isObject(filled)) throw new Error('a configuration is an object');
  return {
    ...filled,
    channels: channels.map((channel) =>
      fill(
        channelSchema(channel.type, 'platform' in channel ? channel.platform : undefined) ?? CHANNEL_SCHEMAS[channel.type],
        channel,
      ),
    ),
    models: Object.fromEntries(Object.entries(models).map(([name, model]) => [name, fill(MODEL_SCHEMA, model)])),
  };
}

/** What is wrong with a value. */
export type ShapeChecker = (value: unknown) => readonly ConfigProblem[];

/** The same words for whatever else is checked against a schema. */
export function shapeChecker(schema: TSchema): ShapeChecker {
  const checked = checkedBy(schema);
  return (value) => {
    const problems: ConfigProblem[] = [];
    collect(checked, value, '', problems);
    return problems;
  };
}

/** Errors that only repeat another error of the same place. */
const ECHOES = new Set(['boolean', 'anyOf', 'const']);

type ShapeError = ReturnType<Checked['Errors']>[number];

/** Appends the problems of `value`, which stands at the JSON pointer `at` of the file. */
function collect(schema: Checked, value: unknown, at: string, problems: ConfigProblem[]): void {
  if (schema.Check(value)) return;
  const all = schema.Errors(value);
  // Where an enumeration is expected, a value of another type gets the list of allowed values as well.
  const worded = placesOf(all.filter(({ keyword }) => keyword === 'const'));
  const errors = withJoinedTypes(all.filter(({ keyword, instancePath }) => keyword !== 'type' || !worded.has(instancePath)));
  const known = placesOf(errors.filter(({ keyword }) => !ECHOES.has(keyword)));
  const words = new Map<string, string[]>();
  const before = problems.length;
  for (const error of errors) {
    const unknownKeys = unknownKeysOf(error);
    const word = wordOf(error);
    if (unknownKeys !== undefined) {
      for (const key of unknownKeys) problems.push(unknownKey(schema, at, error.instancePath, key));
    } else if (word !== undefined && !known.has(error.instancePath)) {
      words.set(error.instancePath, [...(words.get(error.instancePath) ?? []), word]);
    } else if (!ECHOES.has(error.keyword)) {
      problems.push({ path: pathOfPointer(at + error.instancePath), message: error.message });
    }
  }
  for (const [place, allowed] of words) {
    const message = `must be ${allowed.length > 1 ? 'one of ' : ''}${allowed.join(', ')}`;
    problems.push({ path: pathOfPointer(at + place), message });
  }
  if (problems.length === before) problems.push({ path: pathOfPointer(at), message: 'does not fit the schema' });
}

function placesOf(errors: readonly ShapeError[]): ReadonlySet<string> {
  return new Set(errors.map(({ instancePath }) => instancePath));
}

/** Undefined for any other error. */
function unknownKeysOf({ keyword, params }: ShapeError): readonly string[] | undefined {
  if (keyword !== 'additionalProperties' || !('additionalProperties' in params)) return undefined;
  return Array.isArray(params.additionalProperties) ? params.additionalProperties.map(String) : undefined;
}

/** The one word that would have been right, as the file has it; undefined for any other error. */
function wordOf({ keyword, params }: ShapeError): string | undefined {
  return keyword === 'const' && 'allowedValue' in params ? JSON.stringify(params.allowedValue) : undefined;
}

function unknownKey(schema: Checked, at: string, place: string, key: string): ConfigProblem {
  const meant = suggestKey(schema.schema, partsOf(place), key);
  const where = at === '' || meant === undefined ? meant : `${pathOfPointer(at)}.${meant}`;
  // `models.m.channels`: the same word twice would tell nothing.
  const isOnTop = where === key && `${at}${place}` !== '';
  const hint = where === undefined ? '' : `; did you mean ${where}${isOnTop ? ', at the top of the file' : ''}?`;
  return { path: pathOfPointer(`${at}${place}/${key}`), message: `is not a known key${hint}` };
}

const isType = ({ keyword }: ShapeError): boolean => keyword === 'type';

/**
 * A place with alternatives has a type error for each. Where the value has the type of one of them, only its other errors count;
 * else the types are joined into one message.
 */
function withJoinedTypes(errors: readonly ShapeError[]): ShapeError[] {
  const types = Map.groupBy(errors.filter(isType), ({ instancePath }) => instancePath);
  return errors.flatMap((error) => {
    if (!isType(error)) return [error];
    const here = types.get(error.instancePath) ?? [];
    if (error !== here[0] || hasFit(errors, error.instancePath)) return [];
    return [
      {
        ...error,
        message: here
          .map(({ message }) => message)
          .join(' or ')
          .replaceAll(' or must be ', ' or '),
      },
    ];
  });
}

/**
 * Whether the value has the type of one alternative: then there are errors inside it, or errors about something else than its
 * type.
 */
function hasFit(errors: readonly ShapeError[], place: string): boolean {
  return errors.some((error) => {
    if (error.instancePath === place) return !isType(error) && !ECHOES.has(error.keyword);
    return error.instancePath.startsWith(`${place}/`);
  });
}
