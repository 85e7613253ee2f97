/** Reads content that arrives as blocks instead of one string, in terms of the members that other vendors have beside `content`. */
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { listAt, textAt } from '../wire.ts';

/** The text of a JSON answer that a vendor sends as the object itself (Cloudflare). Undefined for other content. */
export function jsonText(content: JsonValue | undefined): string | undefined {
  return isObject(content) && typeof content['type'] !== 'string' ? JSON.stringify(content) : undefined;
}

/** A call that is a content block, as an entry of `tool_calls`. An empty `input` is the placeholder of a block that has just begun. */
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
  return Array.isArray(thought) ? joinText(listAt(thought, 'thinking')) : textAt(thought, 'thinking');
}

/** The readable summary of a `reasoning` block in the form of a responses item (Databricks). */
export function summaryOf(block: JsonObject): string {
  return joinText(listAt(block['summary'], 'summary'));
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
