/** docs/options.md, printed from the schema of the configuration: every option, where it stands, its default, what it does. */
import { CHANNEL_TYPES } from '../../src/codecs/canonical/dialect.ts';
import { isObject, type JsonObject } from '../../src/codecs/canonical/json.ts';
import { CHANNEL_SCHEMAS, PLATFORM_SCHEMAS } from '../../src/http/config/channel-schema.ts';
import { CONFIG_SCHEMA, MODEL_SCHEMA } from '../../src/http/config/schema.ts';

/** One option of a schema. */
export interface Option {
  readonly path: string;
  readonly values: string;
  readonly fallback: string;
  readonly does: string;
}

const TYPES = CHANNEL_TYPES;

/** The options of a section and of the sections in it, in the order of the schema. */
export function optionsOf(schema: unknown, at = ''): Option[] {
  const json: unknown = JSON.parse(JSON.stringify(schema));
  return isObject(json) ? inside(json, at) : [];
}

function inside(schema: JsonObject, at: string): Option[] {
  const { properties } = schema;
  if (!isObject(properties)) return [];
  return Object.entries(properties).flatMap(([name, value]) => {
    if (!isObject(value)) return [];
    const path = at === '' ? name : `${at}.${name}`;
    const group = groupOf(value);
    const own = group === undefined || typeof value['description'] === 'string' ? [optionOf(path, value)] : [];
    return [...own, ...(group === undefined ? [] : inside(group, path))];
  });
}

/** The section that a key holds, be it beside `null`. */
function groupOf(schema: JsonObject): JsonObject | undefined {
  const forms = Array.isArray(schema['anyOf']) ? schema['anyOf'] : [schema];
  return forms.filter(isObject).find(({ properties }) => isObject(properties));
}

function optionOf(path: string, schema: JsonObject): Option {
  const fallback = schema['default'];
  const shown =
    fallback === undefined || (isObject(fallback) && Object.keys(fallback).length === 0) ? '' : JSON.stringify(fallback);
  return { path, values: valuesOf(schema), fallback: shown, does: String(schema['description'] ?? '') };
}

function valuesOf(schema: JsonObject): string {
  if (Array.isArray(schema['anyOf'])) return schema['anyOf'].filter(isObject).map(valuesOf).join(', ');
  if (schema['const'] !== undefined) return `\`${String(schema['const'])}\``;
  const { minimum, maximum, type } = schema;
  const from = minimum === undefined ? '' : ` ≥ ${String(minimum)}`;
  const to = maximum === undefined ? '' : ` ≤ ${String(maximum)}`;
  return type === 'array' ? 'list' : `${String(type)}${from}${to}`;
}

function row(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

function table(
  options: readonly Option[],
  more: (option: Option) => readonly string[] = () => [],
  heads: readonly string[] = [],
): string[] {
  const head = ['Option', ...heads, 'Values', 'Default', 'What it does'];
  const code = (text: string): string => (text === '' ? '' : `\`${text}\``);
  return [
    row(head),
    row(head.map(() => '---')),
    ...options.map((option) => row([code(option.path), ...more(option), option.values, code(option.fallback), option.does])),
  ];
}

interface PlatformOption {
  readonly option: Option;
  readonly platforms: Set<string>;
}

/** What platforms add to the types that they serve, each option once, with the platforms that have it. */
export function platformOptions(): readonly PlatformOption[] {
  const found = new Map<string, PlatformOption>();
  for (const [type, platforms] of Object.entries(PLATFORM_SCHEMAS)) {
    const plain = optionsOf(Object.entries(CHANNEL_SCHEMAS).find(([name]) => name === type)?.[1]);
    const known = new Set(plain.map(({ path, does }) => `${path} ${does}`));
    for (const [platform, schema] of Object.entries<unknown>(platforms)) {
      for (const option of optionsOf(schema).filter(({ path, does }) => !known.has(`${path} ${does}`))) {
        const key = `${option.path} ${option.does}`;
        const held = found.get(key) ?? { option, platforms: new Set() };
        held.platforms.add(platform);
        found.set(key, held);
      }
    }
  }
  return [...found.values()];
}

function platformTable(): string[] {
  const rows = platformOptions().map(({ option, platforms }) => ({
    option: option.path === 'platform' ? { ...option, values: '`bedrock`, `vertex`, `azure`' } : option,
    platforms: [...platforms].sort().map((name) => `\`${name}\``),
  }));
  const platformsOf = new Map(rows.map(({ option, platforms }) => [option, platforms.join(', ')]));
  const options = rows.map(({ option }) => option);
  return table(options, (option) => [platformsOf.get(option) ?? ''], ['Platforms']);
}

const PAIRS = Object.entries(PLATFORM_SCHEMAS)
  .map(
    ([type, platforms]) =>
      `\`${type}\` (${Object.keys(platforms)
        .map((name) => `\`${name}\``)
        .join(', ')})`,
  )
  .join(', ');

export function printOptions(): string {
  const ofType = TYPES.map((type) => [type, optionsOf(CHANNEL_SCHEMAS[type])] as const);
  const all = new Map<string, Option[]>();
  for (const [, options] of ofType) for (const option of options) all.set(option.path, [...(all.get(option.path) ?? []), option]);
  const distinct = [...all.values()].flatMap((options) => [
    ...new Map(options.map((option) => [JSON.stringify({ ...option, values: '' }), option])).values(),
  ]);
  const holds = (types: readonly (readonly [string, readonly Option[]])[], wanted: Option): string[] =>
    types
      .filter(([, options]) =>
        options.some(({ path, does, fallback }) => path === wanted.path && does === wanted.does && fallback === wanted.fallback),
      )
      .map(([type]) => type);
  const typesOf = (option: Option): readonly string[] => {
    const types = holds(ofType, option);
    return [types.length === TYPES.length || option.path === 'type' ? 'all' : types.map((type) => `\`${type}\``).join(', ')];
  };
  const channels = distinct.filter(
    ({ path }, index) => path !== 'type' || distinct.findIndex((other) => other.path === path) === index,
  );
  return [
    '# Every option',
    '',
    'Printed from the schema of the configuration by `npm run docs`. `mizu check` names every mistake with its path; an option that a Channel’s',
    'type does not use is one. An editor that reads `"$schema": "./mizu.schema.json"` completes and checks the file. Times are milliseconds.',
    '',
    '## The file',
    '',
    ...table(optionsOf(CONFIG_SCHEMA)),
    '',
    '## An entry of `channels`',
    '',
    'Each type has those options that it uses.',
    '',
    ...table(
      channels.map((option) =>
        option.path === 'type' ? { ...option, values: TYPES.map((type) => `\`${type}\``).join(', ') } : option,
      ),
      typesOf,
      ['Channel types'],
    ),
    '',
    '## A Channel behind a platform',
    '',
    `Types with their platforms: ${PAIRS}.`,
    'Such a Channel has the options of its type but `auth` and `path`, and these ([docs/clouds.md](clouds.md)):',
    '',
    ...platformTable(),
    '',
    '## An entry of `models`',
    '',
    ...table(optionsOf(MODEL_SCHEMA)),
    '',
  ].join('\n');
}
