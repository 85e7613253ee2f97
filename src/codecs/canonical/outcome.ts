/** How a response ended. Only `completed` is a success without reservation; `incomplete` is a true answer that was cut. */
import type { GatewayError } from './error.ts';
import type { JsonValue } from './json.ts';

export type IncompleteReason = 'max_output' | 'content_filter' | 'context_window' | 'pause' | 'compaction' | 'other';

interface Spelling {
  /** The upstream's own word (`end_turn`, `insufficient_system_resource`, `STOP`, …). */
  readonly native?: string;
  /** Details that the same dialect repeats (messages `stop_details`, responses `incomplete_details`). */
  readonly details?: JsonValue;
}
export interface Completed extends Spelling {
  readonly status: 'completed';
  /** `toolUse` when the model waits for tool results. */
  readonly stop: 'end' | 'stopSequence' | 'toolUse';
  readonly stopSequence?: string;
}
export interface Incomplete extends Spelling {
  readonly status: 'incomplete';
  readonly reason: IncompleteReason;
}
/** The upstream said that it failed: what was said before stays, with usage and the error. */
export interface Failed extends Spelling {
  readonly status: 'failed';
  readonly error: GatewayError;
}
export interface Cancelled extends Spelling {
  readonly status: 'cancelled';
  readonly error: GatewayError;
}
export type Outcome = Completed | Incomplete | Failed | Cancelled;
