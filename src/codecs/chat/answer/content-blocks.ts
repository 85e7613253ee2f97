/**
 * Reads content that arrives as blocks instead of one string, in terms of the members that other vendors have beside `content`.
 */
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { listAt, textAt } from '../wire.ts';

/** The text of a JSON answer that a vendor sends as the object itself (Cloudflare). Undefined for other content. */
export function jsonText(content: JsonValue | undefined): string | undefined {
  return isObject(content) && typeof content['type'] !== 'string' ? JSON.stringify(content) : undefined;
}

/**
 * A call that is a content block, as an entry of `tool_calls`. An empty `input` is the placeholder of a block that has just
 * begun.
 */
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

/** Content that is a list of blocks, in the members that this protocol has for it. Blocks of other kinds have none. */
export interface PlainContent {
  readonly content: string;
  readonly refusal: string;
  readonly reasoning: string;
  readonly hasCalls: boolean;
  readonly images: readonly JsonObject[];
}

export function plainContent(blocks: readonly JsonValue[]): PlainContent {
  const plain = { content: '', refusal: '', reasoning: '', hasCalls: false, images: [] as JsonObject[] };
  for (const block of blocks) {
    if (typeof block === 'string') plain.content += block;
    if (!isObject(block)) continue;
    switch (block['type']) {
      case 'text':
      case 'output_text':
        plain.content += textAt(block['text'], 'content');
        break;
      case 'refusal':
        plain.refusal += textAt(block['refusal'], 'content');
        break;
      case 'thinking':
      case 'reasoning':
        plain.reasoning += thoughtOf(block) + summaryOf(block);
        break;
      case 'tool_call':
      case 'function_call':
      case 'tool_use':
        plain.hasCalls = true;
        break;
      case 'image_url':
        plain.images.push(block);
        break;
    }
  }
  return plain;
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
