/** Reads every import of `src/` and fails on an arrow that runs the wrong way, and on the bans of the design ("Four rooms"). */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { dirname, normalize } from 'node:path';
import { test } from 'node:test';

const files = globSync('src/**/*.ts').map((file) => file.replaceAll('\\', '/'));
const text = new Map(files.map((file) => [file, readFileSync(file, 'utf8')]));

interface Import {
  readonly from: string;
  readonly to: string;
}

function importsOf(file: string): Import[] {
  const source = text.get(file) ?? '';
  const found = source.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g);
  return [...found].map(([, path]) => ({ from: file, to: normalize(`${dirname(file)}/${path ?? ''}`).replaceAll('\\', '/') }));
}

const imports = files.flatMap(importsOf);
const room = (file: string) => file.split('/')[1] ?? file;

/**
 * What each room may import, as prefixes of paths. The three annexes: the simulator sees nothing of ours, pages see codecs' names
 * and http's route rows as data, `cli` sees everything. `main.ts` is the entry.
 */
const ALLOWED: Record<string, readonly string[]> = {
  streams: ['src/streams/'],
  store: ['src/store/'],
  codecs: ['src/codecs/', 'src/streams/'],
  http: ['src/http/', 'src/codecs/', 'src/store/', 'src/streams/'],
  simulator: ['src/simulator/'],
  pages: ['src/pages/', 'src/codecs/canonical/dialect.ts', 'src/codecs/canonical/error.ts', 'src/http/server/route-table.ts'],
  // The manifest knows the version.
  cli: ['src/', 'package.json'],
  'main.ts': ['src/cli/enter.ts'],
};

test('imports run in one direction: streams <- codecs <- http -> store, and no room imports an annex', () => {
  const wrong = imports.filter(({ from, to }) => !(ALLOWED[room(from)] ?? []).some((prefix) => to.startsWith(prefix)));
  assert.deepEqual(wrong, []);
});

/** Tables whose columns stand under the names in a comment are as wide as they are. */
const isLongComment = (line: string): boolean => /^\s*(\/\/|\/\*|\*)/.test(line) && line.length > 130 && !/\S {4,}\S/.test(line);

test('a file of src has at most 360 lines', () => {
  const long = files.filter((file) => (text.get(file) ?? '').split('\n').length > 361);
  assert.deepEqual(long, []);
});

test('a comment of src has lines of at most 130 columns', () => {
  const long = files.flatMap((file) =>
    (text.get(file) ?? '')
      .split('\n')
      .filter((line) => isLongComment(line))
      .map((line) => `${file}: ${line}`),
  );
  assert.deepEqual(long, []);
});

test('no file imports itself by way of others, types included', () => {
  const targets = Map.groupBy(imports, ({ from }) => from);
  const sound = new Set<string>();
  const circle = (file: string, way: readonly string[]): readonly string[] | undefined => {
    if (way.includes(file)) return [...way.slice(way.indexOf(file)), file];
    if (sound.has(file)) return undefined;
    for (const { to } of targets.get(file) ?? []) {
      const found = circle(to, [...way, file]);
      if (found !== undefined) return found;
    }
    sound.add(file);
    return undefined;
  };
  assert.deepEqual(
    files.flatMap((file) => circle(file, []) ?? []),
    [],
  );
});

const DIALECTS = ['chat', 'responses', 'messages', 'gemini', 'completions', 'embeddings', 'images', 'videos'];
const dialectOf = (file: string) => DIALECTS.find((name) => file.startsWith(`src/codecs/${name}/`));

test('no codec imports another codec: they meet in codecs/canonical', () => {
  const wrong = imports.filter(({ from, to }) => {
    const [source, target] = [dialectOf(from), dialectOf(to)];
    return source !== undefined && target !== undefined && source !== target;
  });
  assert.deepEqual(wrong, []);
});

test('what several codecs need knows none of them: every folder of codecs/ is a dialect or is shared', () => {
  const SHARED = ['canonical', 'requests', 'answers', 'errors', 'tools', 'schemas', 'json', 'bodies'];
  const folders = new Set(files.flatMap((file) => /^src\/codecs\/([^/]+)\//.exec(file)?.[1] ?? []));
  assert.deepEqual([...folders].sort(), [...DIALECTS, ...SHARED].sort());
  const wrong = imports.filter(({ from, to }) => SHARED.some((name) => from.startsWith(`src/codecs/${name}/`)) && dialectOf(to));
  assert.deepEqual(wrong, []);
});

const TEXT_DIALECTS = {
  chat: ['client', 'upstream'],
  responses: ['client', 'upstream'],
  messages: ['client', 'upstream'],
  gemini: ['upstream'],
  completions: ['client'],
} as const;

/** What a dialect's folder holds for each side that it speaks; whatever else stands there is beside these. */
const FILES = {
  client: ['losses', 'index', 'lifecycle', 'request/decode', 'answer/encode', 'answer/whole'],
  upstream: ['losses', 'index', 'lifecycle', 'wire', 'errors', 'request/encode', 'answer/decode'],
} as const;

test('every dialect that holds conversations has the same rooms and file names', () => {
  const missing = Object.entries(TEXT_DIALECTS).flatMap(([dialect, sides]) => {
    const names: string[] = sides.flatMap((side) => FILES[side]);
    if (sides.length === 2) names.push('request/splice', 'answer/splice');
    return names.map((name) => `src/codecs/${dialect}/${name}.ts`).filter((file) => !files.includes(file));
  });
  assert.deepEqual(missing, []);
});

test('only codecs/registry.ts names every protocol', () => {
  const wrong = imports.filter(
    ({ from, to }) =>
      dialectOf(to) !== undefined &&
      dialectOf(from) === undefined &&
      from.startsWith('src/codecs/') &&
      from !== 'src/codecs/registry.ts',
  );
  assert.deepEqual(wrong, []);
});

test('from an endpoint’s row to its handler are two files: the table of handlers, and the one that defines it', () => {
  const table = 'src/http/routes/handlers.ts';
  const lines = [...(text.get(table) ?? '').matchAll(/^import \{ ([^}]+) \} from '([^']+)';/gm)];
  assert.ok(lines.length > 5);
  const passedOn = lines.flatMap(([, names = '', path = '']) => {
    const file = normalize(`${dirname(table)}/${path}`).replaceAll('\\', '/');
    const defined = (name: string) =>
      new RegExp(`^export (const|function|async function) ${name}\\b`, 'm').test(text.get(file) ?? '');
    return names.split(', ').flatMap((name) => (defined(name) ? [] : [`${name} of ${file}`]));
  });
  assert.deepEqual(passedOn, []);
});

/** `name`, `type Name`, `name as other` and `name: other`, of one import. */
const IMPORTED = /(?:type\s+)?(\w+)(?:\s*(?:as\s|:)\s*\w+)?/g;

test('what is exported is imported somewhere, if only by a test', () => {
  const used = new Set<string>();
  for (const path of [...files, ...globSync('{test,bench}/**/*.ts')]) {
    const source = text.get(path) ?? readFileSync(path, 'utf8');
    for (const [, names = '', to = ''] of source.matchAll(
      /(\{[^{}]*\}|\* as \w+)\s*(?:from|=\s*await\s+import\()\s*'(\.[^']+)'/g,
    )) {
      const target = normalize(`${dirname(path)}/${to}`).replaceAll('\\', '/');
      if (names.startsWith('*')) used.add(`${target}: *`);
      else for (const [, name] of names.matchAll(IMPORTED)) used.add(`${target}: ${name}`);
    }
  }
  const exported = files.flatMap((file) =>
    used.has(`${file}: *`)
      ? []
      : [...(text.get(file) ?? '').matchAll(/^export (?:async )?(?:const|function|class) (\w+)/gm)].map(
          ([, name]) => `${file}: ${name}`,
        ),
  );
  assert.deepEqual(
    exported.filter((name) => !used.has(name)),
    [],
  );
});

test('a file is found by its path, never by the path of its URL: that spells a space as %20', () => {
  const everywhere = globSync('{src,test,bench}/**/*.ts');
  assert.deepEqual(
    everywhere.filter((file) => /import\.meta\.url\)\.pathname/.test(readFileSync(file, 'utf8'))),
    [],
  );
});

test('no drawer for odds and ends', () => {
  const banned = /(^|\/)(utils?|helpers?|common|types|misc)(\.ts|\/)/;
  assert.deepEqual(
    files.filter((file) => banned.test(file)),
    [],
  );
});

/** A source without comments and string contents, so that prose cannot trip a ban. */
function code(file: string): string {
  return (text.get(file) ?? '').replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
}

const BANS: readonly { readonly what: string; readonly pattern: RegExp; readonly where: (file: string) => boolean }[] = [
  { what: 'default export', pattern: /^export default/m, where: () => true },
  { what: 'any', pattern: /(:\s*any\b|\bas any\b|<any>)/, where: () => true },
  { what: 'type forced open', pattern: /as unknown as|@ts-ignore|@ts-expect-error|@ts-nocheck/, where: () => true },
  { what: 'empty catch', pattern: /catch\s*(\([^)]*\))?\s*\{\s*\}/, where: () => true },
  { what: 'environment or argv outside the entry', pattern: /process\.(env|argv)\b/, where: (file) => file !== 'src/main.ts' },
  { what: 'V13: code made of text', pattern: /\beval\(|\bnew Function\(|\bimport\((?!['"])/, where: () => true },
  { what: 'Readable.toWeb', pattern: /Readable\.toWeb|\bfetch\(/, where: () => true },
  {
    what: 'an item event that a dialect makes by itself: decoders write through canonical/item-emitter.ts',
    pattern: /^(?!.*\bExtract<).*\{ type: 'item\.\w+', index/m,
    where: (file) => /^src\/codecs\/\w+\/answer\//.test(file),
  },
  {
    // V8 makes such a function in the old generation, where it keeps all that it can see until the next full collection.
    what: 'a function literal assigned to a property',
    pattern: /\.#?\w+\s*(?:\?\?)?=\s*(?:async\s*)?(?:function\b|(?:\([^()]*(?:\([^()]*\)[^()]*)*\)(?:\s*:\s*[^=;]+?)?|\w+)\s*=>)/,
    where: () => true,
  },
  {
    what: 'unsettled randomness or time',
    pattern: /Math\.random|Date\.now|new Date\(\)/,
    // streams/clock.ts is the one implementation of the clock that everything else is handed.
    where: (file) => /^src\/(streams|codecs|store)\//.test(file) && file !== 'src/streams/clock.ts',
  },
];

for (const { what, pattern, where } of BANS) {
  test(`banned in src: ${what}`, () => {
    assert.deepEqual(
      files.filter((file) => where(file) && pattern.test(code(file))),
      [],
    );
  });
}

/** The fields and methods of an interface, by its name. */
function membersOf(file: string, name: string): string[] {
  const body =
    new RegExp(`export interface ${name} (?:extends [^{]*)?\\{\\n(.*?)\\n\\}`, 's').exec(text.get(file) ?? '')?.[1] ?? '';
  return [...body.matchAll(/^ {2}(?:readonly )?(\w+)[(:<]/gm)].map(([, member]) => member ?? '');
}

test('every figure of the metrics is counted somewhere', () => {
  const home = 'src/http/operations/metrics.ts';
  const read = files
    .filter((file) => file !== home)
    .map((file) => text.get(file) ?? '')
    .join('\n');
  const figures = membersOf(home, 'Metrics');
  assert.ok(figures.length > 10);
  assert.deepEqual(
    figures.filter((name) => !new RegExp(`\\.${name}\\b`).test(read)),
    [],
    'nobody calls these: `gateway.metrics.…` where the thing happens',
  );
});

test('every option of a section is read somewhere, by its own name or as code spells it', () => {
  const schemas = ['schema', 'limit-schemas'].map((name) => `src/http/config/${name}.ts`);
  const read = files
    .filter((file) => !schemas.includes(file))
    .map((file) => text.get(file) ?? '')
    .join('\n');
  const options = schemas.flatMap((file) =>
    [...(text.get(file) ?? '').matchAll(/^\s+([a-z]+(?:_[a-z]+)*): (?:withDefault|Type\.|Milliseconds)/gm)].map(
      ([, name = '']) => name,
    ),
  );
  assert.ok(options.length > 50);
  const spelt = (name: string): string => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  assert.deepEqual(
    options.filter((name) => !new RegExp(`\\b(${name}|${spelt(name)})\\b`).test(read)),
    [],
  );
});

test('every member of the store is read outside of the engines, not only by tests', () => {
  const contract = text.get('src/store/store.ts') ?? '';
  const homes = new Map(
    [...contract.matchAll(/import type \{ ([^}]*) \} from '\.\/([\w-]+)\.ts'/g)].flatMap(([, names = '', file]) =>
      names.split(', ').map((name) => [name, `src/store/${file}.ts`] as const),
    ),
  );
  const store = /export interface Store \{\n(.*?)\n\}/s.exec(contract)?.[1] ?? '';
  const parts = [...store.matchAll(/^ {2}readonly (\w+): (\w+);/gm)].map(([, part = '', type = '']) => ({ part, type }));
  // Whoever opens a store reads of it, too; a part may also be handed on by itself.
  const readers = files.filter((file) => !file.startsWith('src/store/') || file.endsWith('/open.ts'));
  const read = readers.map((file) => text.get(file) ?? '').join('\n');
  const handedOn = new Set(['adminTokens.authenticate']);
  const unread = parts.flatMap(({ part, type }) => {
    const members = membersOf(homes.get(type) ?? '', type);
    // One that is a function has none.
    return (members.length === 0 ? [`store.${part}`] : members.map((member) => `${part}.${member}`)).filter(
      (name) => !handedOn.has(name) && !new RegExp(`\\b${name.replace('.', '\\s*\\.\\s*')}\\b`).test(read),
    );
  });
  assert.deepEqual(unread, []);
});
