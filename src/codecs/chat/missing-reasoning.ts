import type { CodecOptions } from '../codec.ts';

/**
 * The `reasoning_content` of a turn with calls that has none, such as a turn of another model. A server that wants the reasoning of such
 * turns back (DeepSeek) refuses one without the member; an empty one is enough. Undefined where the Channel wants none.
 */
export function missingReasoning({ replayReasoningContent }: CodecOptions): string | undefined {
  return replayReasoningContent === true ? '' : undefined;
}
