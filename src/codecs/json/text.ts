/**
 * Edits JSON text without rewriting it: every byte outside an edit stays, so number spelling, key order, unknown members and white space
 * survive (design: "Same dialect on both sides is lossless"). The text must already have parsed.
 */

export type JsonPath = readonly (string | number)[];

export interface JsonEdit {
  readonly path: JsonPath;
  /** The new value as JSON text; `undefined` removes the member or element. A missing member is added to its parent object. */
  readonly value: string | undefined;
}

/** A step in the tree of the paths of all edits. */
interface Node {
  edit: JsonEdit | undefined;
  /** The start of the container in which it was last found: duplicate members may each hold it. */
  foundIn: number;
  /** Made for the first child: most nodes are the end of a path. */
  children: Map<string | number, Node> | undefined;
}

type Nodes = ReadonlyMap<string | number, Node>;

/** A range of the text and its replacement. */
export interface Change {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** The text with all edits made. Edits of a parent that does not exist are ignored; an edit beneath an edited path is ignored. */
export function editJson(text: string, edits: readonly JsonEdit[]): string {
  return apply(text, changesOf(text, edits));
}

/** What {@link editJson} would change, in text order. */
export function changesOf(text: string, edits: readonly JsonEdit[]): Change[] {
  const root = newNode();
  for (const edit of edits) addEdit(root, edit);
  const changes: Change[] = [];
  if (edits.length > 0) visit(text, skipSpace(text, 0), root, changes);
  return changes;
}

function newNode(): Node {
  return { edit: undefined, foundIn: -1, children: undefined };
}

function addEdit(root: Node, edit: JsonEdit): void {
  let node = root;
  for (const step of edit.path) {
    node.children ??= new Map();
    let child = node.children.get(step);
    if (child === undefined) {
      child = newNode();
      node.children.set(step, child);
    }
    node = child;
  }
  node.edit = edit;
}

function apply(text: string, changes: readonly Change[]): string {
  let result = '';
  let cursor = 0;
  for (const change of changes) {
    result += text.slice(cursor, change.start) + change.text;
    cursor = change.end;
  }
  return result + text.slice(cursor);
}

/** Visits the value at `start`, adds its changes in text order, and returns the index after it. */
function visit(text: string, start: number, node: Node, changes: Change[]): number {
  if (node.edit !== undefined) {
    const end = skipValue(text, start);
    changes.push({ start, end, text: node.edit.value ?? 'null' });
    return end;
  }
  const opening = text.charCodeAt(start);
  const { children } = node;
  if (children === undefined || (opening !== OPEN_BRACE && opening !== OPEN_BRACKET)) return skipValue(text, start);
  return visitMembers(text, start, opening === OPEN_BRACE, children, changes);
}

/** Like {@link visit}, for the members of the container at `start`. */
function visitMembers(text: string, start: number, isObject: boolean, children: Nodes, changes: Change[]): number {
  const removals = new Removals(start + 1, changes);
  const end = eachChild(text, start, (key, at, memberStart) => {
    const child = children.get(key);
    if (child !== undefined) child.foundIn = start;
    if (child?.edit !== undefined && child.edit.value === undefined) {
      const removedEnd = skipValue(text, at);
      removals.remove(memberStart, removedEnd);
      return removedEnd;
    }
    removals.stop(memberStart);
    const keptEnd = child === undefined ? skipValue(text, at) : visit(text, at, child, changes);
    removals.keep(keptEnd);
    return keptEnd;
  });
  removals.close();
  if (isObject) addMissing(children, start, removals, changes);
  return end;
}

/** Removes members from one container. Adjacent members are one change, which includes their commas. */
class Removals {
  readonly #changes: Change[];
  /** The end of the last member, kept or removed; before the first member, its start. */
  lastEnd: number;
  /** The end of the last kept member; undefined while there is none. */
  keptEnd: number | undefined;
  /** The start of the current run of removed members. */
  #runStart: number | undefined;

  constructor(start: number, changes: Change[]) {
    this.lastEnd = start;
    this.#changes = changes;
  }

  remove(start: number, end: number): void {
    this.#runStart ??= start;
    this.lastEnd = end;
  }

  /** A kept member begins here: a run before it is removed with the commas after it. */
  stop(start: number): void {
    if (this.#runStart !== undefined) this.#changes.push({ start: this.#runStart, end: start, text: '' });
    this.#runStart = undefined;
  }

  keep(end: number): void {
    this.keptEnd = end;
    this.lastEnd = end;
  }

  /** The container ends: a run at its end is removed with the comma before it. */
  close(): void {
    if (this.#runStart !== undefined) this.#changes.push({ start: this.keptEnd ?? this.#runStart, end: this.lastEnd, text: '' });
  }
}

/** Adds the members that were to be set and were not found, after the last member of the object at `start`. */
function addMissing(children: Nodes, start: number, { keptEnd, lastEnd }: Removals, changes: Change[]): void {
  let added = '';
  for (const [key, child] of children) {
    if (child.foundIn === start || typeof key !== 'string' || child.edit?.value === undefined) continue;
    added += `${keptEnd !== undefined || added !== '' ? ',' : ''}${JSON.stringify(key)}:${child.edit.value}`;
  }
  if (added !== '') changes.push({ start: lastEnd, end: lastEnd, text: added });
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** The index of the first character at or after `at` that is not white space. */
export function skipSpace(text: string, at: number): number {
  let code = text.charCodeAt(at);
  while (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) code = text.charCodeAt(++at);
  return at;
}

/** The index after the string that begins at `at`; the length of a text that ends within it. */
export function skipString(text: string, at: number): number {
  let close = at;
  do {
    close = text.indexOf('"', close + 1);
    if (close < 0) return text.length;
  } while (isEscaped(text, close));
  return close + 1;
}

function isEscaped(text: string, at: number): boolean {
  let back = at - 1;
  while (text.charCodeAt(back) === BACKSLASH) back -= 1;
  return (at - 1 - back) % 2 === 1;
}

function readKey(text: string, start: number, end: number): string {
  const inner = text.slice(start + 1, end - 1);
  return inner.includes('\\') ? String(JSON.parse(text.slice(start, end))) : inner;
}

const STRUCTURE = /["{}[\]]/g;

/** The index after the number or literal at `at`. */
function skipScalar(text: string, at: number): number {
  let end = at;
  while (end < text.length && !isScalarEnd(text.charCodeAt(end))) end += 1;
  return end;
}

function isScalarEnd(code: number): boolean {
  return code === COMMA || code === CLOSE_BRACE || code === CLOSE_BRACKET || code <= 0x20;
}

/** The index after the value that begins at `at`. */
export function skipValue(text: string, at: number): number {
  const first = text.charCodeAt(at);
  if (first === QUOTE) return skipString(text, at);
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) return skipScalar(text, at);
  let depth = 0;
  let cursor = at;
  for (;;) {
    STRUCTURE.lastIndex = cursor;
    if (!STRUCTURE.test(text)) return text.length;
    const found = STRUCTURE.lastIndex - 1;
    const code = text.charCodeAt(found);
    if (code === QUOTE) {
      cursor = skipString(text, found);
      continue;
    }
    depth += code === OPEN_BRACE || code === OPEN_BRACKET ? 1 : -1;
    cursor = found + 1;
    if (depth === 0) return cursor;
  }
}

/** The exact text of the value at `path`; undefined where there is none. Of duplicate keys the last counts, as in JSON.parse. */
export function sliceJson(text: string, path: JsonPath): string | undefined {
  const span = spanOf(text, path);
  return span === undefined ? undefined : text.slice(span.start, span.end);
}

/** The range of the value at `path`; otherwise like {@link sliceJson}. */
export function spanOf(text: string, path: JsonPath): { readonly start: number; readonly end: number } | undefined {
  let at = skipSpace(text, 0);
  for (const step of path) {
    const next = find(text, at, step);
    if (next === undefined) return undefined;
    at = next;
  }
  return { start: at, end: skipValue(text, at) };
}

function find(text: string, start: number, step: string | number): number | undefined {
  let found: number | undefined;
  eachChild(text, start, (key, at) => {
    if (key === step) found = at;
    return skipValue(text, at);
  });
  return found;
}

/**
 * {@link sliceJson} for many paths of one text. Containers on the way are indexed once, so that a body with thousands of calls is scanned
 * once for each level, not once for each call.
 */
export function jsonSlicer(text: string): (path: JsonPath) => string | undefined {
  const containers = new Map<number, ReadonlyMap<string | number, number>>();
  const childrenOf = (start: number): ReadonlyMap<string | number, number> => {
    let known = containers.get(start);
    if (known === undefined) {
      known = indexChildren(text, start);
      containers.set(start, known);
    }
    return known;
  };
  return (path) => {
    let at: number | undefined = skipSpace(text, 0);
    for (const step of path) {
      at = childrenOf(at).get(step);
      if (at === undefined) return undefined;
    }
    return text.slice(at, skipValue(text, at));
  };
}

/** The start of each child of the container at `start`; empty for a scalar. Of duplicate keys the last counts. */
function indexChildren(text: string, start: number): ReadonlyMap<string | number, number> {
  const found = new Map<string | number, number>();
  eachChild(text, start, (key, at) => {
    found.set(key, at);
    return skipValue(text, at);
  });
  return found;
}

/**
 * Calls `child` for each child of the container at `start`, with its key or index, the start of its value and the start of the member; `child`
 * returns the end of the value. Returns the index after the container, or `start` for a scalar, which has no children.
 */
export function eachChild(
  text: string,
  start: number,
  child: (key: string | number, at: number, memberStart: number) => number,
): number {
  const opening = text.charCodeAt(start);
  if (opening !== OPEN_BRACE && opening !== OPEN_BRACKET) return start;
  let index = 0;
  let at = skipSpace(text, start + 1);
  while (at < text.length && text.charCodeAt(at) !== CLOSE_BRACE && text.charCodeAt(at) !== CLOSE_BRACKET) {
    const memberStart = at;
    let key: string | number = index++;
    if (opening === OPEN_BRACE) {
      const keyEnd = skipString(text, at);
      key = readKey(text, at, keyEnd);
      at = skipSpace(text, skipSpace(text, keyEnd) + 1);
    }
    at = skipSpace(text, child(key, at, memberStart));
    if (text.charCodeAt(at) === COMMA) at = skipSpace(text, at + 1);
  }
  return at + 1;
}

/** The exact texts of the elements of the array at `path`; undefined where there is no array. */
export function sliceElements(text: string, path: JsonPath): string[] | undefined {
  const span = spanOf(text, path);
  if (span === undefined || text.charCodeAt(span.start) !== OPEN_BRACKET) return undefined;
  const elements: string[] = [];
  eachChild(text, span.start, (_key, at) => {
    const end = skipValue(text, at);
    elements.push(text.slice(at, end));
    return end;
  });
  return elements;
}

const SPACE_OR_STRING = /["\s]/g;

/** The text without the white space between its tokens; strings and number spelling stay. */
export function compactJson(text: string): string {
  let result = '';
  let kept = 0;
  let cursor = 0;
  for (;;) {
    SPACE_OR_STRING.lastIndex = cursor;
    const found = SPACE_OR_STRING.exec(text)?.index;
    if (found === undefined) return result + text.slice(kept);
    if (text.charCodeAt(found) === QUOTE) {
      cursor = skipString(text, found);
      continue;
    }
    result += text.slice(kept, found);
    cursor = kept = skipSpace(text, found);
  }
}
