/**
 * Arguments that arrive by path (`{jsonPath: "$.a[0].b", stringValue: "Bos", willContinue: true}`). They are built in maps: no
 * key of the upstream is ever assigned to an object.
 */
import { grown } from '../../canonical/grown.ts';
import { isObject, type JsonValue } from '../../canonical/json.ts';
import { malformed } from './decode-chunk.ts';

type Node =
  | { readonly kind: 'object'; readonly members: Map<string, Node> }
  | { readonly kind: 'array'; readonly elements: Node[] }
  | { readonly kind: 'string'; text: string; continues: boolean }
  | { readonly kind: 'raw'; readonly text: string };

export class PartialArguments {
  readonly #root: Node = { kind: 'object', members: new Map() };

  /** Adds one piece. `numberText` returns the text of its number exactly as it was sent. Throws `malformed_event`. */
  add(piece: JsonValue, numberText: () => string | undefined): void {
    if (!isObject(piece) || typeof piece['jsonPath'] !== 'string') throw malformed('partialArgs');
    const path = readPath(piece['jsonPath']);
    const last = path.pop();
    if (last === undefined) throw malformed('jsonPath');
    let holder = this.#root;
    for (const [index, step] of path.entries()) {
      const next = path[index + 1] ?? last;
      holder = at(holder, step) ?? put(holder, step, emptyFor(next));
    }
    const value = piece['stringValue'];
    if (typeof value === 'string') {
      this.#addText(holder, last, value, piece['willContinue'] === true);
    } else if (piece['numberValue'] !== undefined) {
      put(holder, last, { kind: 'raw', text: numberText() ?? String(piece['numberValue']) });
    } else if (typeof piece['boolValue'] === 'boolean') {
      put(holder, last, { kind: 'raw', text: String(piece['boolValue']) });
    } else if ('nullValue' in piece) {
      put(holder, last, { kind: 'raw', text: 'null' });
    } else {
      throw malformed('partialArgs');
    }
  }

  #addText(holder: Node, step: string | number, text: string, continues: boolean): void {
    const known = at(holder, step);
    if (known?.kind === 'string' && known.continues) {
      known.text = grown(known.text, text);
      known.continues = continues;
    } else {
      put(holder, step, { kind: 'string', text, continues });
    }
  }

  /** The arguments so far as compact JSON text, members in the order of their first piece. */
  toJson(): string {
    return write(this.#root);
  }
}

function write(node: Node): string {
  switch (node.kind) {
    case 'object':
      return `{${[...node.members].map(([key, value]) => `${JSON.stringify(key)}:${write(value)}`).join(',')}}`;
    case 'array':
      return `[${node.elements.map(write).join(',')}]`;
    case 'string':
      return JSON.stringify(node.text);
    case 'raw':
      return node.text;
  }
}

function emptyFor(step: string | number): Node {
  return typeof step === 'number' ? { kind: 'array', elements: [] } : { kind: 'object', members: new Map() };
}

function at(holder: Node, step: string | number): Node | undefined {
  if (holder.kind === 'object' && typeof step === 'string') return holder.members.get(step);
  if (holder.kind === 'array' && typeof step === 'number') return holder.elements[step];
  throw malformed('jsonPath');
}

/** Elements arrive in order, so a gap means that a piece was lost. */
function put(holder: Node, step: string | number, value: Node): Node {
  if (holder.kind === 'object' && typeof step === 'string') holder.members.set(step, value);
  else if (holder.kind === 'array' && typeof step === 'number' && step <= holder.elements.length) holder.elements[step] = value;
  else throw malformed('jsonPath');
  return value;
}

const STEP = /\.([^.[\]]+)|\[(\d{1,9})\]|\[(?:'([^'\\]*(?:\\.[^'\\]*)*)'|"([^"\\]*(?:\\.[^"\\]*)*)")\]/gy;

/** No path into real arguments is longer; a very deep one would overflow the stack. */
const MAX_PATH_CHARS = 4096;

function readPath(path: string): (string | number)[] {
  if (path.length > MAX_PATH_CHARS) throw malformed('jsonPath');
  const steps: (string | number)[] = [];
  let end = path.startsWith('$') ? 1 : -1;
  STEP.lastIndex = end;
  for (let match = end < 0 ? null : STEP.exec(path); match !== null; match = STEP.exec(path)) {
    const quoted = match[3] ?? match[4];
    steps.push(match[2] === undefined ? (match[1] ?? quoted?.replace(/\\(.)/g, '$1') ?? '') : Number(match[2]));
    end = STEP.lastIndex;
  }
  if (end !== path.length || steps.length === 0) throw malformed('jsonPath');
  return steps;
}
