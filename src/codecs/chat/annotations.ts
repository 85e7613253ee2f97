/** Annotations of chat completions as citations, both ways. Positions count code points; chat's of the whole content, the item's of its own text. */
import type { Citation } from '../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { malformed, word } from './wire.ts';

/** `{type: "url_citation", url_citation: {…}}`; equal positions mean that none are known. Other annotations stay native. */
export function readAnnotation(value: JsonValue): Citation | undefined {
  if (!isObject(value)) throw malformed('annotations');
  if (value['type'] !== 'url_citation') return { kind: 'native', dialect: 'chat', body: value };
  const body = isObject(value['url_citation']) ? value['url_citation'] : value;
  const url = word(body['url']);
  if (url === undefined) throw malformed('annotations');
  const title = word(body['title']);
  const { start_index: start, end_index: end } = body;
  const known = typeof start === 'number' && typeof end === 'number' && end > start && start >= 0;
  return { kind: 'url', url, ...(title === undefined ? {} : { title }), ...(known ? { start, end } : {}) };
}

/** Positions count from the beginning of the whole content; the item's own begin at `base`. */
export function place(citation: Citation, base: number): Citation {
  if (citation.kind !== 'url' || citation.start === undefined || citation.end === undefined || base === 0) return citation;
  const { start, end, ...rest } = citation;
  return start < base ? rest : { ...rest, start: start - base, end: end - base };
}

/** A position outside the text points at nothing. */
export function within(citation: Citation, length: number): Citation {
  if (citation.kind !== 'url' || citation.end === undefined || citation.end <= length) return citation;
  const { start: _start, end: _end, ...rest } = citation;
  return rest;
}

/** A url citation counted from the beginning of the whole content; undefined for citations of other dialects. */
export function annotation(citation: Citation, base: number): JsonObject | undefined {
  if (citation.kind !== 'url') return undefined;
  const { url, title = '', start, end } = citation;
  const placed = start !== undefined && end !== undefined;
  return {
    type: 'url_citation',
    url_citation: { start_index: placed ? base + start : 0, end_index: placed ? base + end : 0, url, title },
  };
}
