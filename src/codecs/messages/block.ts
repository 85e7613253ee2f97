/** One content block of an answer, as the readers of whole bodies and of streams use it. */
import type { CanonicalEvent } from '../canonical/event.ts';
import type { ItemStatus } from '../canonical/item.ts';
import type { JsonObject } from '../canonical/json.ts';
import type { DecodeContext } from '../codec.ts';
import type { BlockKind } from './lifecycle.ts';

export interface Block {
  readonly kind: BlockKind;
  start(out: CanonicalEvent[]): void;
  /** `delta` fits the kind already. */
  delta(delta: JsonObject, out: CanonicalEvent[]): void;
  /** One more piece of its text, its thinking or its input, as a delta says it; absent where it has none of these. */
  say?(piece: string, out: CanonicalEvent[]): void;
  /**
   * Ends a block that has stopped: `incomplete` where the answer was cut in it. False, and nothing said, when its JSON is unfinished:
   * only `cut` may then close it.
   */
  stop(status: ItemStatus, out: CanonicalEvent[]): boolean;
  /** True for a call whose arguments have not begun. */
  readonly isUnbegun?: boolean;
  /** Closes a block that may not have stopped as incomplete. */
  cut(out: CanonicalEvent[]): void;
}

/** What blocks need of their answer. */
export interface BlockHost {
  readonly context: DecodeContext;
  /** The next canonical item index; called when an item begins. */
  nextIndex(): number;
  /** The upstream calls a tool of its own. */
  serverToolCalled(name: string): void;
}
