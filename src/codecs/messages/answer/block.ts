/** What the reader of one content block of an answer does. */
import type { CanonicalEvent } from '../../canonical/event.ts';
import type { ItemStatus } from '../../canonical/item.ts';
import type { ItemEmitter } from '../../canonical/item-emitter.ts';
import type { JsonObject } from '../../canonical/json.ts';
import type { DecodeContext } from '../../codec.ts';
import type { BlockKind } from '../lifecycle.ts';

export interface Block {
  readonly kind: BlockKind;
  /** The caller has checked that the block takes this kind of delta. */
  delta(delta: JsonObject, out: CanonicalEvent[]): void;
  /** Appends to its text, thinking or input, as its own kind of delta does; absent where it has none of these. */
  append?(text: string, out: CanonicalEvent[]): void;
  /** What is appended is emitted in another form. Absent: as it is. */
  readonly rewrites?: boolean;
  /**
   * Ends a block whose content_block_stop came; `incomplete` where the answer was cut in it. Returns false and emits nothing when
   * its JSON is unfinished: then only `cut` may end it.
   */
  stop(status: ItemStatus, out: CanonicalEvent[]): boolean;
  /** True for a tool call without any of its input yet. */
  readonly hasNoInput?: boolean;
  /** Ends the block as incomplete, whether or not its content_block_stop came. */
  cut(out: CanonicalEvent[]): void;
}

/** What a block reader needs of the answer that it belongs to. */
export interface BlockHost {
  readonly context: DecodeContext;
  readonly items: ItemEmitter;
  /** The upstream called a tool that it runs itself. */
  serverToolCalled(name: string): void;
}
