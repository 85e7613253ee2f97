/**
 * A row of the request log as large as one may be: an upstream may answer anything, and a client may ask for any effort, as often as it
 * likes, and every row is kept for months.
 */
import type { AttemptEntry, RequestLogEntry } from '../../store/request-log.ts';

/** As much as is read of an error. */
const MAX_TEXT = 256 * 1024;
/** Of a code, an id, a name. */
const MAX_WORD = 256;
/** A report that is longer is none of usage. */
const MAX_USAGE_JSON = 64 * 1024;

type Words = Pick<AttemptEntry, 'errorCode' | 'errorText' | 'upstreamRequestId'> &
  Pick<RequestLogEntry, 'effort' | 'model' | 'usageJson'>;

/** How long each text may be that comes from outside. */
const BOUNDS: Readonly<Record<keyof Words, number>> = {
  errorText: MAX_TEXT,
  errorCode: MAX_WORD,
  upstreamRequestId: MAX_WORD,
  effort: MAX_WORD,
  model: MAX_WORD,
  usageJson: MAX_USAGE_JSON,
};
const NAMES = Object.keys(BOUNDS) as readonly (keyof Words)[];

/** The same entry where nothing is too long. */
export function boundedEntry(entry: RequestLogEntry): RequestLogEntry {
  const attempts = entry.attempts.some(isTooLong) ? entry.attempts.map(bounded) : entry.attempts;
  if (attempts === entry.attempts && !isTooLong(entry)) return entry;
  const { usageJson, ...rest } = bounded(entry);
  // A part of it would be no JSON.
  return { ...rest, ...(usageJson === entry.usageJson && usageJson !== undefined ? { usageJson } : {}), attempts };
}

function isTooLong(words: Partial<Words>): boolean {
  return NAMES.some((name) => (words[name]?.length ?? 0) > BOUNDS[name]);
}

function bounded<Part extends Partial<Words>>(part: Part): Part {
  const cut: Partial<Record<keyof Words, string>> = {};
  for (const name of NAMES) {
    const text = part[name];
    if (text !== undefined && text.length > BOUNDS[name]) cut[name] = text.slice(0, BOUNDS[name]);
  }
  return { ...part, ...cut };
}
