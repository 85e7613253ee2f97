/**
 * Finds the first of many sequences in a text that comes in pieces, in time linear in both (Aho and Corasick's automaton over
 * UTF-16 units).
 */

interface Node {
  readonly next: Map<number, Node>;
  /** How many characters lead here from the root. */
  readonly depth: number;
  /** The node of the longest proper end of what leads here that is itself the beginning of a sequence. */
  fallback: Node | undefined;
  /** The longest sequence that ends here. */
  sequence: string | undefined;
}

export interface StopTree {
  readonly root: Node;
}

/** Empty sequences are none. */
export function stopTree(sequences: readonly string[]): StopTree {
  const root = newNode(0);
  for (const sequence of sequences) {
    if (sequence === '') continue;
    let node = root;
    for (let at = 0; at < sequence.length; at += 1) {
      const code = sequence.charCodeAt(at);
      let child = node.next.get(code);
      if (child === undefined) {
        child = newNode(at + 1);
        node.next.set(code, child);
      }
      node = child;
    }
    node.sequence = sequence;
  }
  link(root);
  return { root };
}

function newNode(depth: number): Node {
  return { next: new Map(), depth, fallback: undefined, sequence: undefined };
}

function link(root: Node): void {
  const queue = [root];
  for (let at = 0; at < queue.length; at += 1) {
    const node = queue[at];
    for (const [code, child] of node?.next ?? []) {
      child.fallback = node === root ? root : step(node?.fallback ?? root, code, root);
      child.sequence ??= child.fallback.sequence;
      queue.push(child);
    }
  }
}

function step(from: Node, code: number, root: Node): Node {
  for (let node: Node | undefined = from; node !== undefined; node = node.fallback) {
    const next = node.next.get(code);
    if (next !== undefined) return next;
  }
  return root;
}

export interface FoundStop {
  readonly sequence: string;
  /** Where it begins in the text so far. */
  readonly start: number;
}

export class StopMachine {
  readonly #root: Node;
  #node: Node;
  #read = 0;

  constructor({ root }: StopTree) {
    this.#root = root;
    this.#node = root;
  }

  /** How many of the characters read last may be the beginning of a sequence. */
  get pending(): number {
    return this.#node.depth;
  }

  /** Reads the next piece. The sequence that is complete first counts, and of several the longest. */
  read(piece: string): FoundStop | undefined {
    for (let at = 0; at < piece.length; at += 1) {
      this.#node = step(this.#node, piece.charCodeAt(at), this.#root);
      this.#read += 1;
      const { sequence } = this.#node;
      if (sequence !== undefined) return { sequence, start: this.#read - sequence.length };
    }
    return undefined;
  }
}
