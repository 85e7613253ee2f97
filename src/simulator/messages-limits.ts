/** What Anthropic refuses of cache breakpoints, ids, media and sampling, whatever the conversation says. */
import { isObject, type JsonObject, type JsonValue, listOf, numberOf, objectOf, stringOf } from './json.ts';
import { refuse } from './messages-schemas.ts';

const MOST_BREAKPOINTS = 4;

/**
 * Breakpoints in the order in which the vendor reads them: tools, system, messages. A lifetime of 1h stands before those of 5m.
 */
export function checkBreakpoints(body: JsonObject): void {
  const found: { readonly at: string; readonly ttl: string }[] = [];
  const look = (value: JsonValue | undefined, at: string, inner?: string): void => {
    listOf(value).forEach((entry, index) => {
      const block = objectOf(entry);
      if (inner !== undefined) look(block[inner], `${at}.${index}.${inner}`, inner);
      if (block.cache_control === undefined || block.cache_control === null) return;
      found.push({ at: `${at}.${index}`, ttl: lifetimeOf(block, `${at}.${index}`) });
    });
  };
  look(body.tools, 'tools');
  look(body.system, 'system');
  listOf(body.messages).forEach((message, index) => {
    look(objectOf(message).content, `messages.${index}.content`, 'content');
  });
  // The position of the automatic one is the vendor's; it counts as one more.
  const automatic = isObject(body.cache_control) ? 1 : 0;
  if (automatic === 1) lifetimeOf(body, '');
  const count = found.length + automatic;
  if (count > MOST_BREAKPOINTS)
    refuse(`A maximum of ${MOST_BREAKPOINTS} blocks with cache_control may be provided. Found ${count}.`);
  const short = found.findIndex(({ ttl }) => ttl === '5m');
  const late = short === -1 ? undefined : found.slice(short).find(({ ttl }) => ttl === '1h');
  if (late === undefined) return;
  refuse(
    `${late.at}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. ` +
      'Note that blocks are processed in the following order: `tools`, `system`, `messages`.',
  );
}

function lifetimeOf(block: JsonObject, at: string): string {
  const path = `${at === '' ? '' : `${at}.`}cache_control`;
  const { type, ttl = '5m' } = objectOf(block.cache_control);
  if (type !== 'ephemeral')
    refuse(`${path}: Input tag '${stringOf(type)}' found using 'type' does not match any of the expected tags: 'ephemeral'`);
  if (ttl !== '5m' && ttl !== '1h') refuse(`${path}.ephemeral.ttl: Input should be '5m' or '1h'`);
  if (block.type === 'thinking' || block.type === 'redacted_thinking')
    refuse(`${path}: cache_control cannot be set for ${block.type} blocks`);
  return ttl;
}

export function checkSampling({ temperature, top_p, top_k, stop_sequences: stop, metadata }: JsonObject): void {
  const heat = numberOf(temperature);
  if (heat !== undefined && (heat < 0 || heat > 1)) refuse('temperature: range: 0..1');
  const nucleus = numberOf(top_p);
  if (nucleus !== undefined && (nucleus < 0 || nucleus > 1)) refuse('top_p: range: 0..1');
  const choices = numberOf(top_k);
  if (choices !== undefined && choices < 0) refuse('top_k: Input should be greater than or equal to 0');
  listOf(stop).forEach((sequence, index) => {
    if (stringOf(sequence).trim() === '') refuse(`stop_sequences.${index}: each stop sequence must contain non-whitespace`);
  });
  if (stringOf(objectOf(metadata).user_id).length > 256) refuse('metadata.user_id: String should have at most 256 characters');
}

const IMAGES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];

export function checkMedia({ type, source }: JsonObject, at: string): void {
  if (!isObject(source)) refuse(`${at}.${stringOf(type)}.source: Field required`);
  const path = `${at}.${stringOf(type)}.source.${stringOf(source.type)}`;
  if (source.type === 'base64' && stringOf(source.data) === '') refuse(`${path}.data: Field required`);
  if (source.type === 'base64' && type === 'image' && !IMAGES.includes(stringOf(source.media_type)))
    refuse(`${path}.media_type: Input should be ${IMAGES.map((name) => `'${name}'`).join(', ')}`);
  if (source.type === 'base64' && type === 'document' && source.media_type !== 'application/pdf')
    refuse(`${path}.media_type: Input should be 'application/pdf'`);
}
