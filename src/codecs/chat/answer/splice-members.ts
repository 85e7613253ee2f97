/**
 * Edits for an answer that goes to a client of the same dialect. They add members without which the official clients break and
 * which vendors leave out (no `role` in a whole stream, no `message` beside a filter's verdict) or name differently. They remove
 * routers' prices.
 */
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { countOf } from '../../canonical/usage.ts';
import type { JsonEdit } from '../../json/edit.ts';
import type { JsonPath } from '../../json/text.ts';
import { leaveOutPrices } from '../../answers/token-usage.ts';
import { callEntries } from './call-pieces.ts';
import { jsonText, plainContent } from './content-blocks.ts';
import { nonEmptyString } from '../wire.ts';

export function completeChoice(choice: JsonObject, path: JsonPath, edits: JsonEdit[]): void {
  if (typeof choice['index'] !== 'number') edits.push({ path: [...path, 'index'], value: '0' });
}

/** The members of a whole answer that strict clients refuse to miss. `createdAt` in seconds. */
export function completeBody({ object, created }: JsonObject, createdAt: number, edits: JsonEdit[]): void {
  if (nonEmptyString(object) === undefined) edits.push({ path: ['object'], value: '"chat.completion"' });
  if (typeof created !== 'number') edits.push({ path: ['created'], value: String(createdAt) });
}

/**
 * Every chunk of a choice needs a delta (Azure's late filter results have none), and the first one of a stream needs the role.
 */
export function completeDelta(delta: JsonValue | undefined, isFirst: boolean, path: JsonPath, edits: JsonEdit[]): void {
  if (!isObject(delta)) edits.push({ path, value: isFirst ? '{"role":"assistant"}' : '{}' });
  else if (isFirst && nonEmptyString(delta['role']) === undefined) edits.push({ path: [...path, 'role'], value: '"assistant"' });
}

/** For the message of a whole answer. */
export function completeMessage(message: JsonValue | undefined, path: JsonPath, edits: JsonEdit[]): void {
  if (!isObject(message)) {
    edits.push({ path, value: '{"role":"assistant","content":null,"refusal":null}' });
    return;
  }
  if (nonEmptyString(message['role']) === undefined) edits.push({ path: [...path, 'role'], value: '"assistant"' });
  const content = jsonText(message['content']);
  if (content !== undefined) edits.push({ path: [...path, 'content'], value: JSON.stringify(content) });
}

/**
 * Content that came as a list of blocks (Mistral, Databricks): clients read one text, and the reasoning beside it. `holder`: the
 * delta or the message at `path`. `calls`: its calls, for blocks that are calls.
 */
export function completeContent(holder: JsonObject, path: JsonPath, calls: () => readonly JsonObject[], edits: JsonEdit[]): void {
  const { content, refusal, reasoning_content: thought, images, tool_calls: given } = holder;
  if (!Array.isArray(content)) return;
  const plain = plainContent(content);
  const set = (name: string, value: JsonValue) => edits.push({ path: [...path, name], value: JSON.stringify(value) });
  set('content', plain.content === '' ? null : plain.content);
  if (plain.refusal !== '') set('refusal', (nonEmptyString(refusal) ?? '') + plain.refusal);
  if (plain.reasoning !== '') set('reasoning_content', (nonEmptyString(thought) ?? '') + plain.reasoning);
  if (plain.images.length > 0 && !Array.isArray(images))
    set(
      'images',
      plain.images.map((image, index) => ({ ...image, index })),
    );
  if (plain.hasCalls && callEntries(given).length === 0) set('tool_calls', [...calls()]);
}

/** Usage with any counter needs all three under their standard names, as numbers. Prices of routers are removed. */
export function completeUsage(usage: JsonObject, path: JsonPath, edits: JsonEdit[]): void {
  leaveOutPrices(usage, path, edits);
  const prompt = countOf(usage['prompt_tokens']) ?? countOf(usage['input_tokens']);
  const completion = countOf(usage['completion_tokens']) ?? countOf(usage['output_tokens']);
  if (prompt === undefined && completion === undefined) return;
  for (const [key, fallback] of [
    ['prompt_tokens', prompt ?? 0],
    ['completion_tokens', completion ?? 0],
    ['total_tokens', (prompt ?? 0) + (completion ?? 0)],
  ] as const) {
    const given = usage[key];
    if (typeof given !== 'number') edits.push({ path: [...path, key], value: String(countOf(given) ?? fallback) });
  }
}
