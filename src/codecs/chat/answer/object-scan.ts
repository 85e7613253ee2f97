/**
 * Whether arguments that arrive in pieces are a whole JSON object by now. Each piece is read once: parsing all that has come for
 * every piece would take the square of it.
 */
import { isObjectText } from '../../canonical/json.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

export class ObjectScan {
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  /** `broken`: no object, whatever follows. */
  #state: 'before' | 'inside' | 'closed' | 'broken' = 'before';
  /** Whether the closed text is JSON; white space behind it changes nothing. */
  #isJson: boolean | undefined;

  push(piece: string): void {
    for (let at = 0; at < piece.length && this.#state !== 'broken'; at += 1) this.#read(piece.charCodeAt(at));
  }

  /** `text`: all that was pushed. */
  isWhole(text: string): boolean {
    if (this.#state !== 'closed') return false;
    this.#isJson ??= isObjectText(text);
    return this.#isJson;
  }

  #read(code: number): void {
    if (this.#inString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (code === BACKSLASH) this.#isEscaped = true;
      else if (code === QUOTE) this.#inString = false;
      return;
    }
    if (code === 0x20 || code === 0x09 || code === 0x0a || code === 0x0d) return;
    if (this.#state === 'closed' || (this.#state === 'before' && code !== 0x7b)) {
      this.#state = 'broken';
      return;
    }
    this.#state = 'inside';
    if (code === QUOTE) this.#inString = true;
    else if (code === 0x7b || code === 0x5b) this.#depth += 1;
    else if (code === 0x7d || code === 0x5d) {
      this.#depth -= 1;
      if (this.#depth === 0) this.#state = 'closed';
    }
  }
}
