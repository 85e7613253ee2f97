/** Annotations of output text as citations, both ways. */
import type { Citation } from '../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { spanOf } from '../answers/citations.ts';
import { malformed } from './wire.ts';

const DIALECT = 'responses';

/** A `url_citation` with whole positions, or a native citation. OpenAI counts characters as Python does: code points. */
export function readAnnotation(annotation: JsonValue): Citation {
  if (!isObject(annotation)) throw malformed('annotation');
  const { url, title, start_index: start, end_index: end } = annotation;
  if (annotation['type'] !== 'url_citation' || typeof url !== 'string')
    return { kind: 'native', dialect: DIALECT, body: annotation };
  const positioned = isPosition(start) && isPosition(end);
  return {
    kind: 'url',
    url,
    ...(typeof title === 'string' ? { title } : {}),
    ...(positioned ? { start, end } : {}),
  };
}

function isPosition(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0;
}

export function writeCitations(citations: readonly Citation[]): JsonObject[] {
  const annotations: JsonObject[] = [];
  for (const citation of citations) {
    const annotation = writeCitation(citation);
    if (annotation !== undefined) annotations.push(annotation);
  }
  return annotations;
}

/** Undefined for what this dialect cannot say: no position, or another dialect's own citation. */
export function writeCitation(citation: Citation): JsonObject | undefined {
  if (citation.kind === 'native') return citation.dialect === DIALECT ? citation.body : undefined;
  const span = spanOf(citation);
  if (span === undefined) return undefined;
  return { type: 'url_citation', end_index: span.end, start_index: span.start, title: citation.title ?? '', url: citation.url };
}
