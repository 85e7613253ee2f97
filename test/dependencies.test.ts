/**
 * docs/dependencies.md is true: each package has its row, and the lock file has licences that are allowed and an entry for every
 * platform.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

interface Locked {
  readonly dev?: boolean;
  readonly license?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

type Versions = Readonly<Record<string, string>>;
const { dependencies, optionalDependencies, devDependencies } = read<{
  readonly dependencies: Versions;
  readonly optionalDependencies: Versions;
  readonly devDependencies: Versions;
}>('package.json');
const { packages } = read<{ packages: Readonly<Record<string, Locked>> }>('package-lock.json');
const DOCUMENT = readFileSync('docs/dependencies.md', 'utf8');

function read<T>(file: string): T {
  return JSON.parse(readFileSync(file, 'utf8')) as T;
}

/** The names in the first column of a section's table. */
function rowsOf(heading: string): string[] {
  const section = DOCUMENT.split('\n## ').find((part) => part.startsWith(heading)) ?? '';
  const cells = [...section.matchAll(/^\| (`.*?) \|/gm)].map(([, cell = '']) => cell);
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)).sort();
}

test('each dependency has a row, and each row is a dependency', () => {
  assert.deepEqual(rowsOf('In the running gateway'), Object.keys({ ...dependencies, ...optionalDependencies }).sort());
  assert.deepEqual(rowsOf('For building, testing and measuring'), Object.keys(devDependencies).sort());
});

test('versions are exact', () => {
  for (const [name, version] of Object.entries({ ...dependencies, ...optionalDependencies, ...devDependencies }))
    assert.match(version, /(?:^|@)\d+\.\d+\.\d+$/, name);
});

test('licences are those that the document names', () => {
  const [running = '', building = ''] = DOCUMENT.slice(DOCUMENT.indexOf('Every package')).split(';');
  for (const [name, { license = 'none', dev = false }] of Object.entries(packages)) {
    if (name === '') continue;
    // A choice between licences is as good as its best.
    const choice = license.replaceAll(/[()]/g, '').split(' OR ');
    const allowed = dev ? `${running}${building}` : running;
    assert.ok(
      choice.some((one) => allowed.includes(one)),
      `${name}: ${license}`,
    );
  }
});

test('the lock file has an entry for every platform that a package is built for', () => {
  let entries = 0;
  for (const [place, { optionalDependencies = {} }] of Object.entries(packages)) {
    for (const name of Object.keys(optionalDependencies)) {
      const places = [`${place}/node_modules/${name}`, `node_modules/${name}`];
      assert.ok(
        places.some((each) => each in packages),
        `${place || 'mizu'}: ${name}`,
      );
      entries += 1;
    }
  }
  assert.ok(entries > 10, `${entries} entries`);
});
