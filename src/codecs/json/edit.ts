/**
 * Edits JSON text without rewriting it: every byte outside an edit stays, so number spelling, key order, unknown members and
 * white space survive (design: "Same dialect on both sides is lossless"). The text must already have parsed.
 */
import { isObject, type JsonValue, parseJson, setMember } from '../canonical/json.ts';
import { eachChild, type Ends, type JsonPath, OPEN_BRACE, OPEN_BRACKET, skipSpace, skipValue } from './text.ts';

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

/**
 * The text with all edits made. Edits of a parent that does not exist are ignored; an edit beneath an edited path is ignored.
 * `ends`: where long values of the text end, which are then not looked through.
 */
export function editJson(text: string, edits: readonly JsonEdit[], ends?: Ends): string {
  return apply(text, changesOf(text, edits, ends));
}

/** {@link editJson}, and where those of the long values end in its text that were not replaced. */
export function editKnown(text: string, edits: readonly JsonEdit[], ends: Ends): { readonly text: string; readonly ends: Ends } {
  const changes = changesOf(text, edits, ends);
  /** By how much the changes before each place of the list let the text grow. */
  const grown = [0];
  for (const { start, end, text: written } of changes) grown.push((grown.at(-1) ?? 0) + written.length - (end - start));
  const before = (at: number): number => grown[at] ?? 0;
  const moved: Ends = new Map();
  for (const [start, end] of ends) {
    const first = firstEndingFrom(changes, start + 1);
    if ((changes[first]?.start ?? text.length) <= start) continue;
    const shift = before(first);
    moved.set(start + shift, end + before(firstEndingFrom(changes, end)));
  }
  return { text: apply(text, changes), ends: moved };
}

/** The place of the first change that ends there or later; they are in text order. */
function firstEndingFrom(changes: readonly Change[], at: number): number {
  let low = 0;
  for (let high = changes.length; low < high; ) {
    const middle = (low + high) >>> 1;
    if ((changes[middle]?.end ?? 0) < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** What {@link editJson} would change, in text order. */
export function changesOf(text: string, edits: readonly JsonEdit[], ends?: Ends): Change[] {
  const changes: Change[] = [];
  if (edits.length > 0) visit(text, skipSpace(text, 0), treeOf(edits), changes, ends);
  return changes;
}

/** What the text that {@link editJson} returns would parse to. What no edit touches is shared with `value`, not read again. */
export function editValue(value: JsonValue, edits: readonly JsonEdit[]): JsonValue {
  return edits.length === 0 ? value : editedValue(value, treeOf(edits));
}

function editedValue(value: JsonValue, { edit, children }: Node): JsonValue {
  if (edit !== undefined) return parseJson(edit.value ?? 'null');
  if (children === undefined) return value;
  if (Array.isArray(value)) return value.flatMap((element, at) => editedElement(element, children.get(at)));
  if (!isObject(value)) return value;
  const copy = { ...value };
  for (const [key, child] of children) {
    if (typeof key !== 'string') continue;
    const isThere = Object.hasOwn(value, key);
    if (child.edit !== undefined && child.edit.value === undefined) delete copy[key];
    else if (isThere || child.edit !== undefined) setMember(copy, key, editedValue(isThere ? (value[key] ?? null) : null, child));
  }
  return copy;
}

function editedElement(element: JsonValue, node: Node | undefined): JsonValue[] {
  if (node === undefined) return [element];
  return node.edit !== undefined && node.edit.value === undefined ? [] : [editedValue(element, node)];
}

function treeOf(edits: readonly JsonEdit[]): Node {
  const root = newNode();
  for (const edit of edits) addEdit(root, edit);
  return root;
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
function visit(text: string, start: number, node: Node, changes: Change[], ends?: Ends): number {
  if (node.edit !== undefined) {
    const end = skipValue(text, start, ends);
    changes.push({ start, end, text: node.edit.value ?? 'null' });
    return end;
  }
  const opening = text.charCodeAt(start);
  const { children } = node;
  if (children === undefined || (opening !== OPEN_BRACE && opening !== OPEN_BRACKET)) return skipValue(text, start, ends);
  return visitMembers(text, start, opening === OPEN_BRACE, children, changes, ends);
}

/** Like {@link visit}, for the members of the container at `start`. */
function visitMembers(text: string, start: number, isObject: boolean, children: Nodes, changes: Change[], ends?: Ends): number {
  const removals = new Removals(start + 1, changes);
  const end = eachChild(text, start, (key, at, memberStart) => {
    const child = children.get(key);
    if (child !== undefined) child.foundIn = start;
    if (child?.edit !== undefined && child.edit.value === undefined) {
      const removedEnd = skipValue(text, at, ends);
      removals.remove(memberStart, removedEnd);
      return removedEnd;
    }
    removals.stop(memberStart);
    const keptEnd = child === undefined ? skipValue(text, at, ends) : visit(text, at, child, changes, ends);
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

/**
 * The text of an object with the last member of each name only: JSON.parse reads the last, other parsers the first. `text` must
 * have parsed; members keep their text and order.
 */
export function lastMembers(text: string, ends?: Ends): string {
  const kept = new Map<string | number, string>();
  eachChild(text, text.indexOf('{'), (key, at, start) => {
    const end = skipValue(text, at, ends);
    kept.delete(key);
    kept.set(key, text.slice(start, end));
    return end;
  });
  return `{${[...kept.values()].join()}}`;
}
