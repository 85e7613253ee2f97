/**
 * Bounds the size of a row of the request log: upstreams and clients choose some of its texts, and rows are kept for months.
 */
import { defined } from '../../codecs/defined.ts';
import type { AttemptEntry, RequestLogEntry } from '../../store/request-log.ts';

/** Of an error text: as much as is read of one. */
const MAX_TEXT = 256 * 1024;
/** Of a code, an id or a name. */
const MAX_WORD = 256;
/** A longer usage report is not kept at all. */
const MAX_USAGE_JSON = 64 * 1024;
/**
 * Of losses: more than the tables have names. An image request may have any number of members that its upstream does not know.
 */
const MAX_LOSSES = 128;

type OutsideTexts = Pick<AttemptEntry, 'errorCode' | 'errorText' | 'upstreamRequestId'> &
  Pick<RequestLogEntry, 'effort' | 'model' | 'usageJson'>;

/** The greatest length of each text that comes from outside. */
const BOUNDS: Readonly<Record<keyof OutsideTexts, number>> = {
  errorText: MAX_TEXT,
  errorCode: MAX_WORD,
  upstreamRequestId: MAX_WORD,
  effort: MAX_WORD,
  model: MAX_WORD,
  usageJson: MAX_USAGE_JSON,
};
const NAMES = Object.keys(BOUNDS) as readonly (keyof OutsideTexts)[];

/** The entry with long texts cut; the same object where nothing is too long. */
export function boundedEntry(entry: RequestLogEntry): RequestLogEntry {
  const attempts = entry.attempts.some(isTooLong) ? entry.attempts.map(bounded) : entry.attempts;
  const lists = { losses: boundedNames(entry.losses), answerLosses: boundedNames(entry.answerLosses) };
  const isListed = lists.losses === entry.losses && lists.answerLosses === entry.answerLosses;
  if (attempts === entry.attempts && isListed && !isTooLong(entry)) return entry;
  const { usageJson, ...rest } = bounded(entry);
  // Cut JSON would not parse.
  return { ...rest, ...defined({ usageJson: usageJson === entry.usageJson ? usageJson : undefined, ...lists }), attempts };
}

/** The last one says how many are left out; the same list where nothing is too long. */
function boundedNames(names: readonly string[] | undefined): readonly string[] | undefined {
  if (names === undefined || (names.length <= MAX_LOSSES && names.every(({ length }) => length <= MAX_WORD))) return names;
  const kept = names.slice(0, MAX_LOSSES).map((name) => name.slice(0, MAX_WORD));
  return names.length > MAX_LOSSES ? [...kept, `${names.length - MAX_LOSSES} more`] : kept;
}

function isTooLong(texts: Partial<OutsideTexts>): boolean {
  return NAMES.some((name) => (texts[name]?.length ?? 0) > BOUNDS[name]);
}

function bounded<Part extends Partial<OutsideTexts>>(part: Part): Part {
  const cut: Partial<Record<keyof OutsideTexts, string>> = {};
  for (const name of NAMES) {
    const text = part[name];
    if (text !== undefined && text.length > BOUNDS[name]) cut[name] = text.slice(0, BOUNDS[name]);
  }
  return { ...part, ...cut };
}
