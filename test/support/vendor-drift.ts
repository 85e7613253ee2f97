/** Compares the names in the types of a vendor's SDK with what a codec reads and with what is listed (`vendor-names.ts`). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Category } from './vendor-names.ts';
import { literalsOf, memberNames, shapeAt, type VendorFile, type VendorTypes } from './vendor-types.ts';

/** Whether the codec has a reading of the name: it is asked itself. */
export type Reads = (name: string) => boolean;
export interface Names {
  readonly names: ReadonlySet<string>;
  readonly reads: Reads;
}
/** A type of a file, and the members that lead on from it. */
type Place = readonly [VendorFile, string, ...string[]];

/** The literal values at a path, of one type or of several. */
export function literals(types: VendorTypes, reads: Reads, ...places: readonly Place[]): Names {
  const found = places.flatMap(([file, name, ...path]) => [...literalsOf(shapeAt(types.shape(file, name), ...path))].map(String));
  return { names: new Set(found), reads };
}

/** The names of members. */
export function members(types: VendorTypes, reads: Reads, ...places: readonly Place[]): Names {
  const found = places.flatMap(([file, name, ...path]) => [...memberNames(shapeAt(types.shape(file, name), ...path))]);
  return { names: new Set(found), reads };
}

/** A test for each category. A name that is listed must be in the types, and read by nobody. */
export function compareNames(vendor: string, table: Category, all: Readonly<Record<string, Names>>): void {
  for (const [category, { names, reads }] of Object.entries(all)) {
    test(`${vendor}: ${category}`, (t) => {
      assert.ok(names.size > 0, 'the types hold no such name');
      const listed = new Map((table[category] ?? []).flatMap((group) => group.names.map((name) => [name, group] as const)));
      const read = [...names].filter((name) => reads(name));
      const unknown = [...names].filter((name) => !read.includes(name) && !listed.has(name));
      assert.deepEqual(unknown, [], 'names that are neither read nor listed');
      const stale = [...listed.keys()].filter((name) => !names.has(name) || read.includes(name));
      assert.deepEqual(stale, [], 'listed names that are read, or that the types do not have');
      for (const { why } of listed.values()) assert.ok(why.length > 8, 'a reason');
      t.diagnostic(`${read.length} read, ${listed.size} listed`);
    });
  }
  test(`${vendor}: every table belongs to names`, () => assert.deepEqual(Object.keys(table).sort(), Object.keys(all).sort()));
}
