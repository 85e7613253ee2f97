/**
 * Finds the first of many sequences in a text that comes in pieces, in time linear in both (Aho and Corasick's automaton over
 * UTF-16 units). Of the tree only what the text has walked is made: a node for each character of every sequence would take some
 * hundred times what these take, for as long as the answer lasts.
 */

class Node {
  /** How many characters lead here from the root. */
  readonly depth: number;
  /** The node of the longest proper end of what leads here that is itself the beginning of a sequence; only the root has none. */
  readonly fallback: Node | undefined;
  /** The longest sequence that ends here. */
  readonly sequence: string | undefined;
  /** The sequences that go on from here. */
  readonly #longer: readonly string[];
  /** By their next character: those sequences until the text has come there, the node from then on. */
  #next: Map<number, readonly string[] | Node> | undefined;

  /** `through`: the sequences that begin with what leads here. */
  constructor(through: readonly string[], depth: number, fallback?: Node) {
    this.depth = depth;
    this.fallback = fallback;
    this.sequence = depth === 0 ? undefined : (through.find(({ length }) => length === depth) ?? fallback?.sequence);
    this.#longer = through.filter(({ length }) => length > depth);
  }

  next(code: number): Node | undefined {
    this.#next ??= Map.groupBy(this.#longer, (sequence) => sequence.charCodeAt(this.depth));
    const found = this.#next.get(code);
    if (found === undefined || found instanceof Node) return found;
    const node = new Node(found, this.depth + 1, this.fallback === undefined ? this : step(this.fallback, code));
    this.#next.set(code, node);
    return node;
  }
}

export interface StopTree {
  readonly root: Node;
}

/** Empty sequences are none. */
export function stopTree(sequences: readonly string[]): StopTree {
  return { root: new Node(sequences, 0) };
}

function step(from: Node, code: number): Node {
  for (let node = from; ; node = node.fallback) {
    const next = node.next(code);
    if (next !== undefined) return next;
    if (node.fallback === undefined) return node;
  }
}

export interface FoundStop {
  readonly sequence: string;
  /** Where it begins in the text so far. */
  readonly start: number;
}

export class StopMachine {
  #node: Node;
  #read = 0;

  constructor({ root }: StopTree) {
    this.#node = root;
  }

  /** How many of the characters read last may be the beginning of a sequence. */
  get pending(): number {
    return this.#node.depth;
  }

  /** Reads the next piece. The sequence that is complete first counts, and of several the longest. */
  read(piece: string): FoundStop | undefined {
    for (let at = 0; at < piece.length; at += 1) {
      this.#node = step(this.#node, piece.charCodeAt(at));
      this.#read += 1;
      const { sequence } = this.#node;
      if (sequence !== undefined) return { sequence, start: this.#read - sequence.length };
    }
    return undefined;
  }
}
