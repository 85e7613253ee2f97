/**
 * Annotations of chat completions as citations, both ways. Positions count code points: those of chat in the whole content, those
 * of a citation in its item.
 */
import type { Citation } from '../../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { malformed, nonEmptyString } from '../wire.ts';

/**
 * Reads `{type: "url_citation", url_citation: {…}}`. An empty range means that no position is known. Other annotations stay
 * native.
 */
export function readAnnotation(value: JsonValue): Citation {
  if (!isObject(value)) throw malformed('annotations');
  if (value['type'] !== 'url_citation') return { kind: 'native', dialect: 'chat', body: value };
  const body = isObject(value['url_citation']) ? value['url_citation'] : value;
  const url = nonEmptyString(body['url']);
  if (url === undefined) throw malformed('annotations');
  const title = nonEmptyString(body['title']);
  const { start_index: start, end_index: end } = body;
  const known = typeof start === 'number' && typeof end === 'number' && end > start && start >= 0;
  return { kind: 'url', url, ...(title === undefined ? {} : { title }), ...(known ? { start, end } : {}) };
}

/**
 * The sources that a chunk or body lists beside the answer: `citations` (Perplexity, xAI), with titles from `search_results`.
 * Without `citations` the search results are the sources (Baidu, newer Perplexity; `search_info` of Qwen and Hunyuan;
 * `web_search` of GLM).
 */
export function sourcesIn(body: JsonObject): { readonly url: string; readonly title: string }[] {
  const { citations, search_results: found, search_info: info, web_search: searched } = body;
  if (!Array.isArray(citations ?? found ?? searched) && !isObject(info)) return [];
  const titles = new Map<string, string>();
  for (const list of [found, isObject(info) ? info['search_results'] : undefined, searched]) {
    for (const result of Array.isArray(list) ? list.filter(isObject) : []) {
      const url = nonEmptyString(result['url']) ?? nonEmptyString(result['link']);
      if (url !== undefined) titles.set(url, nonEmptyString(result['title']) ?? '');
    }
  }
  const cited = Array.isArray(citations) ? citations.filter((url) => typeof url === 'string') : [];
  return (cited.length === 0 ? [...titles.keys()] : cited).map((url) => ({ url, title: titles.get(url) ?? '' }));
}

/** The citation with positions that count from `base`, where its item begins in the whole content. */
export function toItemPositions(citation: Citation, base: number): Citation {
  if (citation.kind !== 'url' || citation.start === undefined || citation.end === undefined || base === 0) return citation;
  return { ...citation, start: citation.start - base, end: citation.end - base };
}

/** The citation without its position if that lies outside a text of this length. */
export function withinText(citation: Citation, length: number): Citation {
  if (citation.kind !== 'url' || citation.end === undefined || citation.end <= length) return citation;
  const { start: _start, end: _end, ...rest } = citation;
  return rest;
}

/** The annotation for a URL citation of an item that begins at `base`; undefined for native citations. */
export function writeAnnotation(citation: Citation, base: number): JsonObject | undefined {
  if (citation.kind !== 'url') return undefined;
  const { url, title = '', start, end } = citation;
  const placed = start !== undefined && end !== undefined;
  return {
    type: 'url_citation',
    url_citation: { start_index: placed ? base + start : 0, end_index: placed ? base + end : 0, url, title },
  };
}
