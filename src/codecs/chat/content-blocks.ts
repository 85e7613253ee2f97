/** Content that comes as blocks instead of one string: what a block says, in the spelling of the members beside `content`. */
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { list, text } from './wire.ts';

/** The text of an answer in JSON that is not spelled out: content that is the object itself (Cloudflare). Undefined for other content. */
export function spelled(content: JsonValue | undefined): string | undefined {
  return isObject(content) && typeof content['type'] !== 'string' ? JSON.stringify(content) : undefined;
}

/** A call that is a content block, in the spelling of `tool_calls`. The empty `input` of a block that begins is no argument. */
export function callOfBlock(block: JsonObject): JsonObject {
  const inner = isObject(block['function']) ? block['function'] : {};
  const { input } = block;
  const isPlaceholder = isObject(input) && Object.keys(input).length === 0;
  return {
    index: block['index'],
    id: block['call_id'] ?? block['id'],
    function: {
      name: block['name'] ?? inner['name'],
      arguments: block['arguments'] ?? inner['arguments'] ?? (isPlaceholder ? undefined : input),
    },
  };
}

/** The readable text of a `thinking` block (a string or parts) or of a `reasoning` block. */
export function thoughtOf(block: JsonObject): string {
  const thought = block['thinking'] ?? block['text'] ?? block['reasoning'];
  return Array.isArray(thought) ? joinText(list(thought, 'thinking')) : text(thought, 'thinking');
}

/** The readable summary of a `reasoning` block in the spelling of responses items (Databricks). */
export function summaryOf(block: JsonObject): string {
  return joinText(list(block['summary'], 'summary'));
}

/** The text of all blocks that have any. */
export function joinText(blocks: readonly JsonValue[]): string {
  let joined = '';
  for (const block of blocks) {
    if (typeof block === 'string') joined += block;
    else if (isObject(block) && typeof block['text'] === 'string') joined += block['text'];
  }
  return joined;
}
