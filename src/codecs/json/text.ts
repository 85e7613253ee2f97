/**
 * Finds values in JSON text without reading it, so that they can be passed on as they were spelt. The text must already have
 * parsed.
 */

import { endsStep, type Steps, whole } from '../steps.ts';

export type JsonPath = readonly (string | number)[];

export const QUOTE = 0x22;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const BACKSLASH = 0x5c;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;
export const OPEN_BRACKET = 0x5b;
export const CLOSE_BRACKET = 0x5d;

/** The index of the first character at or after `at` that is not white space. */
export function skipSpace(text: string, at: number): number {
  while (isSpace(text.charCodeAt(at))) at += 1;
  return at;
}

export const isSpace = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;

/** The index after the string that begins at `at`; the length of a text that ends within it. */
export function skipString(text: string, at: number): number {
  return stringEnd(text, at + 1, Number.POSITIVE_INFINITY);
}

/**
 * {@link skipString}, from a character in the string: as a negative number, where to go on (`~`), once the look has come to
 * `pause`. Of a string of many escapes each character is looked at, a millisecond for a million.
 */
export function stringEnd(text: string, start: number, pause: number): number {
  let near = NEAR;
  for (let from = start; ; ) {
    if (from >= pause) return ~from;
    for (const end = Math.min(from + near, text.length); from < end; from++) {
      const code = text.charCodeAt(from);
      if (code === QUOTE) return from + 1;
      if (code === BACKSLASH) from += 1;
    }
    if (from >= text.length) return text.length;
    const close = text.indexOf('"', from);
    if (close < 0) return text.length;
    if (!isEscaped(text, close, from)) return close + 1;
    near = close - from < FEW ? Math.min(4 * near, FAR) : NEAR;
    from = close + 1;
  }
}

/**
 * Characters that are looked at before the engine is asked for the next quote: a call of `indexOf` costs as much as these. Where
 * escaped quotes follow each other closely, more and more are looked at.
 */
const NEAR = 8;
const FAR = 64 * 1024;
/** Quotes that are closer to each other are found faster one by one. */
const FEW = 12;

/** Whether an odd number of backslashes stands before `at`; those before `from` do not count. */
export function isEscaped(text: string, at: number, from = 0): boolean {
  let back = at - 1;
  while (back >= from && text.charCodeAt(back) === BACKSLASH) {
    back -= 1;
    // Of a client's millions of them the engine compares many at once.
    while (at - back > MANY.length && back - from >= MANY.length && endsWith(text, MANY, back + 1)) back -= MANY.length;
  }
  return (at - 1 - back) % 2 === 1;
}

const MANY = '\\'.repeat(1024);

const endsWith = (text: string, piece: string, end: number): boolean => text.slice(end - piece.length, end) === piece;

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

/** Where long values end, by their start: what was looked through once is skipped at once. */
export type Ends = Map<number, number>;
/** Values of so many characters are remembered. */
const LONG = 16 * 1024;

/** The index after the value that begins at `at`. `ends` is asked for what is known, and told what was found. */
export function skipValue(text: string, at: number, ends?: Ends): number {
  const known = ends?.get(at);
  if (known !== undefined) return known;
  const first = text.charCodeAt(at);
  if (first === QUOTE && ends === undefined) return skipString(text, at);
  if (first !== QUOTE && first !== OPEN_BRACE && first !== OPEN_BRACKET) return skipScalar(text, at);
  const open: number[] = [];
  let depth = 0;
  let cursor = at;
  for (;;) {
    STRUCTURE.lastIndex = cursor;
    if (!STRUCTURE.test(text)) return text.length;
    const found = STRUCTURE.lastIndex - 1;
    const code = text.charCodeAt(found);
    let start: number | undefined = found;
    if (code === QUOTE) cursor = skipString(text, found);
    else {
      cursor = found + 1;
      const opens = code === OPEN_BRACE || code === OPEN_BRACKET;
      depth += opens ? 1 : -1;
      if (ends !== undefined) start = opens ? open.push(found) && undefined : open.pop();
    }
    if (ends !== undefined && start !== undefined && cursor - start >= LONG) ends.set(start, cursor);
    if (depth === 0) return cursor;
  }
}

/** The exact text of the value at `path`; undefined where there is none. Of duplicate keys the last counts, as in JSON.parse. */
export function sliceJson(text: string, path: JsonPath, ends?: Ends): string | undefined {
  const span = spanOf(text, path, ends);
  return span === undefined ? undefined : text.slice(span.start, span.end);
}

/** A range of a text. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** The range of the value at `path`; otherwise like {@link sliceJson}. */
export function spanOf(text: string, path: JsonPath, ends?: Ends): Span | undefined {
  const start = startOf(text, path, ends);
  return start === undefined ? undefined : { start, end: skipValue(text, start, ends) };
}

function startOf(text: string, path: JsonPath, ends?: Ends): number | undefined {
  let at = skipSpace(text, 0);
  for (const step of path) {
    const next = find(text, at, step, ends);
    if (next === undefined) return undefined;
    at = next;
  }
  return at;
}

function find(text: string, start: number, step: string | number, ends?: Ends): number | undefined {
  let found: number | undefined;
  eachChild(text, start, (key, at) => {
    if (key === step) found = at;
    return skipValue(text, at, ends);
  });
  return found;
}

/**
 * {@link sliceJson} for many paths of one text. Containers on the way are indexed once, and long values are looked through once,
 * so that a body with thousands of calls, or with a very long one, is read about once.
 */
export function jsonSlicer(text: string): (path: JsonPath) => string | undefined {
  const containers = new Map<number, ReadonlyMap<string | number, number>>();
  const ends: Ends = new Map();
  const childrenOf = (start: number): ReadonlyMap<string | number, number> => {
    let known = containers.get(start);
    if (known === undefined) {
      known = indexChildren(text, start, ends);
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
    return text.slice(at, skipValue(text, at, ends));
  };
}

/** The start of each child of the container at `start`; empty for a scalar. Of duplicate keys the last counts. */
function indexChildren(text: string, start: number, ends: Ends): ReadonlyMap<string | number, number> {
  const found = new Map<string | number, number>();
  eachChild(text, start, (key, at) => {
    found.set(key, at);
    return skipValue(text, at, ends);
  });
  return found;
}

/**
 * Calls `child` for each child of the container at `start`, with its key or index, the start of its value and the start of the
 * member; `child` returns the end of the value. Returns the index after the container, or `start` for a scalar, which has no
 * children.
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
export const sliceElements = whole(sliceElementsInSteps);

export function* sliceElementsInSteps(text: string, path: JsonPath, ends?: Ends): Steps<string[] | undefined> {
  let start: number | undefined = skipSpace(text, 0);
  for (const step of path) {
    // Of a text that was put together the first look makes a copy.
    yield;
    start = find(text, start, step, ends);
    if (start === undefined) return undefined;
  }
  if (text.charCodeAt(start) !== OPEN_BRACKET) return undefined;
  yield;
  const elements: string[] = [];
  for (let at = skipSpace(text, start + 1); at < text.length && text.charCodeAt(at) !== CLOSE_BRACKET; ) {
    const end = skipValue(text, at, ends);
    elements.push(text.slice(at, end));
    if (endsStep(elements.length)) yield;
    at = skipSpace(text, end);
    if (text.charCodeAt(at) === COMMA) at = skipSpace(text, at + 1);
  }
  return elements;
}

const SPACE_OR_STRING = /["\s]/g;

/** The text without the white space between its tokens; strings and number spelling stay. */
export const compactJson = whole(compactInSteps);

export function* compactInSteps(text: string): Steps<string> {
  let result = '';
  let kept = 0;
  let cursor = 0;
  for (let token = 0; ; token += 1) {
    if (endsStep(token)) yield;
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
