import type { CodecOptions } from '../../codec.ts';

/**
 * The `reasoning_content` for an assistant turn that calls tools and has none, such as a turn of another model. Servers that want reasoning
 * back (DeepSeek) refuse such a turn without the member; an empty one is enough. Undefined for Channels that do not replay reasoning.
 */
export function missingReasoning({ replayReasoningContent }: CodecOptions): string | undefined {
  return replayReasoningContent === true ? '' : undefined;
}
