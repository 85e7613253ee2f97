/**
 * Follows every tree of an LMDB file from its roots, before LMDB maps it: a page that is not what points to it would end the
 * process with a signal, or worse, read as records that nobody wrote. Knows the layout of the data format 2; knows no table and
 * no record.
 */
import { readSync } from 'node:fs';

/** What the newest meta page tells of the file. */
export interface Roots {
  readonly pageSize: number;
  readonly lastPage: number;
  /** Of the free list and of the main tree, which holds the roots of all others. */
  readonly trees: readonly bigint[];
}

/** A root of a tree that has no page. */
const NO_PAGE = 0xffff_ffff_ffff_ffffn;
const META_PAGES = 2;
const HEADER = 24;
const AT = { number: 0, flags: 18, lower: 20, upper: 22 } as const;
const PAGE = { branch: 0x01, leaf: 0x02, overflow: 0x04, fixed: 0x20 } as const;
const NODE = { header: 8, big: 0x01, tree: 0x02, duplicates: 0x04, root: 40, tree_bytes: 48 } as const;

/** A hundred megabytes, in a fraction of a second; what lies deeper is found by whoever reads it. */
const MAX_PAGES = 25_000;

/** What is wrong with the first page that is, or undefined. Reads at most `most` pages, those near the roots first. */
export function damageOf(file: number, { pageSize, lastPage, trees }: Roots, most = MAX_PAGES): string | undefined {
  const seen = new Set<number>();
  const waiting: number[] = [];
  const page = Buffer.alloc(pageSize);

  const expect = (child: bigint): string | undefined => {
    if (child < BigInt(META_PAGES) || child > BigInt(lastPage)) return `points to page ${child}, which is not there`;
    if (seen.has(Number(child))) return `points to page ${child}, which belongs to another`;
    seen.add(Number(child));
    waiting.push(Number(child));
    return undefined;
  };

  for (const root of trees) {
    const wrong = root === NO_PAGE ? undefined : expect(root);
    if (wrong !== undefined) return `a root ${wrong}`;
  }
  for (let next = 0; next < waiting.length && next < most; next++) {
    const number = waiting[next] ?? 0;
    if (readSync(file, page, 0, pageSize, number * pageSize) < pageSize) return `page ${number} is cut short`;
    const wrong = wrongWith(page, number, expect);
    if (wrong !== undefined) return `page ${number} ${wrong}`;
  }
  return undefined;
}

type Expect = (child: bigint) => string | undefined;

function wrongWith(page: Buffer, number: number, expect: Expect): string | undefined {
  if (page.readBigUInt64LE(AT.number) !== BigInt(number)) return 'is another page, or none';
  const flags = page.readUInt16LE(AT.flags);
  const lower = page.readUInt16LE(AT.lower);
  const upper = page.readUInt16LE(AT.upper);
  const room = page.length - HEADER;
  if ((flags & PAGE.overflow) !== 0) return undefined;
  const isBranch = (flags & PAGE.branch) !== 0;
  if (isBranch === ((flags & PAGE.leaf) !== 0)) return 'is neither a branch nor a leaf';
  // Keys of one size, side by side: there is nothing to follow.
  if ((flags & PAGE.fixed) !== 0) return lower <= room ? undefined : 'is larger than a page';
  if (lower % 2 !== 0 || lower > upper || upper > room) return 'has no bounds';
  for (let at = HEADER; at < HEADER + lower; at += 2) {
    const node = HEADER + page.readUInt16LE(at);
    if (node < HEADER + upper || node + NODE.header > page.length) return 'has an entry outside of itself';
    const wrong = isBranch ? expect(childOf(page, node)) : wrongEntry(page, node, expect);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

function childOf(page: Buffer, node: number): bigint {
  return BigInt(page.readUInt32LE(node)) | (BigInt(page.readUInt16LE(node + 4)) << 32n);
}

function wrongEntry(page: Buffer, node: number, expect: Expect): string | undefined {
  const size = page.readUInt32LE(node);
  const flags = page.readUInt16LE(node + 4);
  const data = node + NODE.header + page.readUInt16LE(node + 6);
  const length = (flags & NODE.big) !== 0 ? NODE.header : size;
  if (data + length > page.length) return 'has an entry that is larger than itself';
  if ((flags & NODE.big) !== 0) return expect(page.readBigUInt64LE(data));
  if ((flags & NODE.tree) === 0) return undefined;
  if (length < NODE.tree_bytes) return 'has a tree without a root';
  const root = page.readBigUInt64LE(data + NODE.root);
  return root === NO_PAGE ? undefined : expect(root);
}
