/** Annotations of chat completions as citations, both ways. Positions count code points; chat's of the whole content, the item's of its own text. */
import type { Citation } from '../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { malformed, word } from './wire.ts';

/** `{type: "url_citation", url_citation: {…}}`; equal positions mean that none are known. Other annotations stay native. */
export function readAnnotation(value: JsonValue): Citation {
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

/**
 * Sources that a chunk or body lists beside the answer: `citations` (Perplexity, xAI), which `search_results` gives titles; without
 * them what was found (Baidu, and Perplexity as announced; `search_info` of Qwen and Hunyuan; `web_search` of GLM).
 */
export function sourcesIn(body: JsonObject): { readonly url: string; readonly title: string }[] {
  const { citations, search_results: found, search_info: info, web_search: searched } = body;
  if (!Array.isArray(citations ?? found ?? searched) && !isObject(info)) return [];
  const titles = new Map<string, string>();
  for (const list of [found, isObject(info) ? info['search_results'] : undefined, searched]) {
    for (const result of Array.isArray(list) ? list.filter(isObject) : []) {
      const url = word(result['url']) ?? word(result['link']);
      if (url !== undefined) titles.set(url, word(result['title']) ?? '');
    }
  }
  const cited = Array.isArray(citations) ? citations.filter((url) => typeof url === 'string') : [];
  return (cited.length === 0 ? [...titles.keys()] : cited).map((url) => ({ url, title: titles.get(url) ?? '' }));
}

/** Positions count from the beginning of the whole content; those of the item, which the citation begins in or behind, at `base`. */
export function place(citation: Citation, base: number): Citation {
  if (citation.kind !== 'url' || citation.start === undefined || citation.end === undefined || base === 0) return citation;
  return { ...citation, start: citation.start - base, end: citation.end - base };
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
