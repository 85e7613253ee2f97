/** How a response ended. `completed` is a full success, `incomplete` a valid answer that was cut. */
import type { GatewayError } from './error.ts';
import type { JsonValue } from './json.ts';

export type IncompleteReason = 'max_output' | 'content_filter' | 'context_window' | 'pause' | 'compaction' | 'other';

/** The upstream's own form of the outcome. */
interface NativeReason {
  /** Its reason (`end_turn`, `insufficient_system_resource`, `STOP`, …). */
  readonly native?: string;
  /** Details, for clients of the same dialect (messages `stop_details`, responses `incomplete_details`). */
  readonly details?: JsonValue;
}
export interface Completed extends NativeReason {
  readonly status: 'completed';
  /** `toolUse` when the model waits for tool results. */
  readonly stop: 'end' | 'stopSequence' | 'toolUse';
  readonly stopSequence?: string;
}
export interface Incomplete extends NativeReason {
  readonly status: 'incomplete';
  readonly reason: IncompleteReason;
}
/** The upstream reported a failure. The items and the usage before it stay. */
export interface Failed extends NativeReason {
  readonly status: 'failed';
  readonly error: GatewayError;
}
export interface Cancelled extends NativeReason {
  readonly status: 'cancelled';
  readonly error: GatewayError;
}
export type Outcome = Completed | Incomplete | Failed | Cancelled;
