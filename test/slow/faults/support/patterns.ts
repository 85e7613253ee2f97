/**
 * Every regular expression literal of the sources, and strings made to hurt it: repetitions of what it looks for, with a
 * beginning that lets it begin and an end that makes it fail. Reads TypeScript as far as finding literals needs.
 */
import { globSync, readFileSync } from 'node:fs';
import fc from 'fast-check';

export interface Pattern {
  readonly place: string;
  readonly expression: RegExp;
}

export function patternsOf(glob: string): Pattern[] {
  return globSync(glob).flatMap((file) =>
    literalsOf(readFileSync(file, 'utf8')).map(({ line, source, flags }) => ({
      place: `${file}:${line}`,
      expression: new RegExp(source, flags),
    })),
  );
}

interface Literal {
  readonly line: number;
  readonly source: string;
  readonly flags: string;
}

/** What may stand before an expression: there a slash begins a pattern, elsewhere it divides. */
const BEFORE = /(?:^|[(,=:[!&|?{};+<>~^%*-]|=>|\b(?:return|typeof|case|in|of|void|delete|throw|new|yield|await))\s*$/;

export function literalsOf(text: string): Literal[] {
  const found: Literal[] = [];
  const templates: number[] = [];
  let code = '';
  let braces = 0;
  for (let at = 0; at < text.length; ) {
    const two = text.slice(at, at + 2);
    const one = text.charAt(at);
    if (two === '//') at = endOf(text, at, '\n');
    else if (two === '/*') at = endOf(text, at + 2, '*/');
    else if (one === '"' || one === "'") {
      at = endOfString(text, at, one);
      code += 'x';
    } else if (one === '`' || (one === '}' && templates.at(-1) === braces)) {
      if (one === '}') templates.pop();
      at = endOfTemplate(text, at + 1);
      if (text.charAt(at - 1) === '{') templates.push(braces);
      code += text.charAt(at - 1) === '{' ? '(' : 'x';
    } else if (one === '/' && BEFORE.test(code.slice(-20))) {
      const [whole = '', source = '', flags = ''] =
        /^\/((?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)\/([a-z]*)/.exec(text.slice(at)) ?? [];
      if (whole === '') throw new Error(`an unreadable pattern: ${text.slice(at, at + 60)}`);
      found.push({ line: text.slice(0, at).split('\n').length, source, flags });
      at += whole.length;
      code += 'x';
    } else {
      if (one === '{') braces += 1;
      if (one === '}') braces -= 1;
      code += one;
      at += 1;
    }
  }
  return found;
}

function endOf(text: string, from: number, what: string): number {
  const end = text.indexOf(what, from);
  return end < 0 ? text.length : end + (what === '\n' ? 0 : what.length);
}

function endOfString(text: string, from: number, quote: string): number {
  let at = from + 1;
  while (at < text.length && text.charAt(at) !== quote) at += text.charAt(at) === '\\' ? 2 : 1;
  return at + 1;
}

/** After the closing quote, or after the `${` of a piece of code. */
function endOfTemplate(text: string, from: number): number {
  let at = from;
  while (at < text.length && text.charAt(at) !== '`' && text.slice(at, at + 2) !== '${') at += text.charAt(at) === '\\' ? 2 : 1;
  return at + (text.charAt(at) === '`' ? 1 : 2);
}

const ORDINARY = [
  'a',
  '0',
  ' ',
  '\n',
  '\t',
  '-',
  '.',
  '"',
  '\\',
  '\\"',
  '/',
  ';',
  '=',
  '[',
  '<',
  'a.',
  'a-',
  '0.',
  'ab',
  'a ',
  ' a',
];
const ENDINGS = ['', '!', '\u0000', '\n', '"'];

export interface Attack {
  readonly head: string;
  readonly piece: string;
  readonly tail: string;
}

/** What repeated beginnings, middles and ends of the pattern's own words look like. */
export function attacksOn({ source, flags }: RegExp): Attack[] {
  const words = wordsOf(source);
  // The hyphen: a word begins behind it, and classes of words hold it.
  const grown = words.flatMap((word) => [`${word}a`, `${word} `, `${word}0`, `-${word}`, `.${word}`]);
  const pieces = new Set([...ORDINARY, ...words, ...grown]);
  const heads = new Set(['', words.join(''), ...words.slice(0, 6), ...beginningsOf(source, flags)]);
  return [...heads].flatMap((head) => [...pieces].flatMap((piece) => ENDINGS.map((tail) => ({ head, piece, tail }))));
}

const REPEATED = /^(?:[*+]|\{\d+,\})/;

/** Texts that lead the pattern into each of its repetitions. */
function beginningsOf(source: string, flags: string): string[] {
  const found: string[] = [];
  /** Of each group that is open, and of the pattern: where it begins, and what of it leads here, without the ways beside. */
  const open = [{ from: 0, lead: '' }];
  for (let at = 0; at < source.length; ) {
    const [token] = /^(?:\\.|\[(?:[^\]\\]|\\.)*\]|\((?:\?(?:<?[=!]|:))?|.)/s.exec(source.slice(at)) ?? [''];
    const group = open.at(-1) ?? { from: 0, lead: '' };
    if (REPEATED.test(source.slice(at)))
      found.push(...textsOf(open.map(({ lead }) => lead).join('') + ')'.repeat(open.length - 1), flags));
    if (token.startsWith('(')) open.push({ from: at, lead: token });
    else if (token === '|') group.lead = source.charAt(group.from) === '(' ? '(?:' : '';
    else if (token === ')') {
      open.pop();
      const outer = open.at(-1);
      if (outer !== undefined) outer.lead += source.slice(group.from, at + 1);
    } else group.lead += token;
    at += token.length;
  }
  return found;
}

/** Of what `fast-check` can follow: it knows neither what looks ahead nor what looks back. */
function textsOf(source: string, flags: string): string[] {
  const bare = source.replace(/^\^/, '').replace(/\(\?<?[=!](?:[^()\\]|\\.)*\)|\\[bB]/g, '');
  try {
    const texts = fc.stringMatching(new RegExp(`^(?:${bare})$`, flags.replace(/[^sui]/g, '')), { size: 'xsmall' });
    return fc.sample(texts, { numRuns: 3, seed: 1 });
  } catch {
    return [];
  }
}

/** The literal runs of a pattern: what it can be led on with. */
function wordsOf(source: string): string[] {
  const bare = source
    .replace(/\[(?:[^\]\\]|\\.)*\]/g, '|')
    .replace(/\\([dDwWsSbBpPux])(?:\{[^}]*\})?/g, '|')
    .replace(/\(\?(?:[:=!]|<[=!])/g, '|')
    .replace(/\{\d+(?:,\d*)?\}/g, '|')
    .replace(/\\(.)/g, '$1');
  return [...new Set(bare.split(/[()|*+?^$.]+/).filter((word) => word !== ''))].slice(0, 12);
}
