/**
 * A vendor's own report of what was used, as the operator exported it: OpenAI's `organization/usage/completions` and Anthropic's
 * `usage_report/messages`, as JSON or as the CSV of either console. Sums by UTC day and model; knows no ledger.
 */
import { dayName, dayNumber } from './spend-windows.ts';
import { done, type Result, refused } from './result.ts';

export type Vendor = 'OpenAI' | 'Anthropic';

/** What both vendors count, in classes that do not overlap. */
export const REPORTED_COUNTS = ['requests', 'input', 'cachedInput', 'cacheWrite', 'output'] as const;
export type ReportedCount = (typeof REPORTED_COUNTS)[number];

/** Of one model on one UTC day. A count that the vendor does not report is absent. */
export interface ReportedUse {
  readonly day: string;
  readonly model: string;
  readonly counts: Readonly<Partial<Record<ReportedCount, number>>>;
}

export interface UsageReport {
  readonly vendor: Vendor;
  /** The first and the last UTC day that the report speaks of, those without any use included. */
  readonly from: string;
  readonly to: string;
  readonly uses: readonly ReportedUse[];
}

/** One entry of a report, whatever held it. */
type Entry = Readonly<Record<string, unknown>>;

interface Entries {
  readonly entries: readonly Entry[];
  /** Buckets in which the vendor counted nothing: what we have there was used according to us alone. */
  readonly empty: readonly Entry[];
}

interface Format {
  readonly vendor: Vendor;
  /** The members that tell it from all others. */
  readonly columns: readonly string[];
  /** When an entry was used: the name of its member. */
  readonly at: string;
  readonly model: string;
  counts(number: (...names: readonly string[]) => number): ReportedUse['counts'];
}

const FORMATS: readonly Format[] = [
  {
    vendor: 'OpenAI',
    columns: ['start_time', 'model', 'input_tokens', 'output_tokens', 'num_model_requests'],
    at: 'start_time',
    model: 'model',
    counts(number) {
      const [cachedInput, cacheWrite] = [number('input_cached_tokens'), number('input_cache_write_tokens')];
      return {
        requests: number('num_model_requests'),
        input: number('input_tokens') - cachedInput - cacheWrite,
        ...{ cachedInput, cacheWrite },
        output: number('output_tokens'),
      };
    },
  },
  {
    vendor: 'Anthropic',
    columns: ['starting_at', 'model', 'uncached_input_tokens', 'output_tokens'],
    at: 'starting_at',
    model: 'model',
    counts: (number) => ({
      input: number('uncached_input_tokens'),
      cachedInput: number('cache_read_input_tokens'),
      cacheWrite: number('cache_creation.ephemeral_5m_input_tokens') + number('cache_creation.ephemeral_1h_input_tokens'),
      output: number('output_tokens'),
    }),
  },
  {
    vendor: 'Anthropic',
    columns: ['usage_date_utc', 'model_version', 'usage_input_tokens_no_cache', 'usage_output_tokens'],
    at: 'usage_date_utc',
    model: 'model_version',
    counts: (number) => ({
      input: number('usage_input_tokens_no_cache'),
      cachedInput: number('usage_input_tokens_cache_read'),
      cacheWrite: number('usage_input_tokens_cache_write_5m') + number('usage_input_tokens_cache_write_1h'),
      output: number('usage_output_tokens'),
    }),
  },
];

/** A refusal names what is wrong with the file, without its path. */
export function readUsageReport(file: string): Result<UsageReport, string> {
  const text = file.replace(/^\uFEFF/, '');
  const read = /^\s*[[{]/.test(text) ? jsonEntries(text) : csvEntries(text);
  if (!read.ok) return read;
  const { entries, empty } = read.value;
  const [first] = entries;
  if (first === undefined) return refused('holds no usage');
  const format = FORMATS.find(({ columns }) => columns.every((name) => Object.hasOwn(first, name)));
  if (format === undefined) return refused(strangerOf(Object.keys(first)));
  const sums = new Map<string, { day: string; model: string; counts: Partial<Record<ReportedCount, number>> }>();
  const days = empty.map((bucket) => dayOfEntry(bucket[format.at])).filter((day) => day !== undefined);
  for (const [index, entry] of entries.entries()) {
    const used = useOf(entry, format);
    if (!used.ok) return refused(`entry ${index + 1}: ${used.refusal}`);
    const { day, model, counts } = used.value;
    days.push(day);
    // A table has a line of zeros for a bucket without use.
    if (model === '') continue;
    const name = `${day} ${model}`;
    const sum = sums.get(name) ?? { day, model, counts: {} };
    for (const count of REPORTED_COUNTS) {
      const more = counts[count];
      if (more !== undefined) sum.counts[count] = (sum.counts[count] ?? 0) + more;
    }
    sums.set(name, sum);
  }
  if (sums.size === 0) return refused('holds no usage');
  const [from = '', to = from] = [days.sort()[0], days.at(-1)];
  return done({ vendor: format.vendor, from, to, uses: [...sums.values()] });
}

function strangerOf(names: readonly string[]): string {
  const lacking = FORMATS.map(({ vendor, columns }) => `${vendor}'s has ${columns.join(', ')}`);
  const shown = names.slice(0, 20).map((name) => name.slice(0, 40));
  return `is no usage export of OpenAI or Anthropic: it has ${shown.join(', ') || 'no columns'}; ${lacking.join('; ')}`;
}

function useOf(entry: Entry, format: Format): Result<ReportedUse, string> {
  const day = dayOfEntry(entry[format.at]);
  if (day === undefined) return refused(`${format.at} is no time`);
  const model = entry[format.model] ?? '';
  let wrong: string | undefined;
  const number = (name: string): number => {
    const value = entry[name] ?? 0;
    const count = typeof value === 'string' ? numberOf(value.trim()) : value;
    if (typeof count === 'number' && Number.isSafeInteger(count) && count >= 0) return count;
    wrong ??= `${name} is no count`;
    return 0;
  };
  const counts = format.counts(number);
  const hasUse = REPORTED_COUNTS.some((count) => (counts[count] ?? 0) !== 0);
  if (typeof model !== 'string' || (model === '' && (hasUse || wrong !== undefined)))
    return refused('it names no model: export the usage grouped by model');
  if (wrong === undefined && (counts.input ?? 0) < 0) wrong = 'it has more cached tokens than input';
  return wrong === undefined ? done({ day, model, counts }) : refused(wrong);
}

/** Digits alone, with a point and zeros as data frames have it: a spreadsheet's `1.23E+07` was rounded. No text is none. */
function numberOf(text: string): number {
  return text === '' ? 0 : /^\d+(?:\.0*)?$/.test(text) ? Number(text) : Number.NaN;
}

/** Seconds since the epoch, or an ISO 8601 day or time (UTC where it has no zone), as the UTC day that it is in. */
function dayOfEntry(at: unknown): string | undefined {
  const text = typeof at === 'number' ? String(at) : at;
  if (typeof text !== 'string') return undefined;
  if (dayNumber(text) !== undefined) return text;
  const hasDay = /^\d{4}-\d{2}-\d{2}T/.test(text) && dayNumber(text.slice(0, 10)) !== undefined;
  const zone = /(?:z|[+-]\d{2}:\d{2})$/i.test(text) ? '' : 'Z';
  const ms = /^\d{9,11}$/.test(text) ? Number(text) * 1000 : hasDay ? Date.parse(text + zone) : Number.NaN;
  return Number.isNaN(ms) ? undefined : dayName(Math.floor(ms / 86_400_000));
}

/** The results of every bucket, each with the members of its bucket; nested members by their path. */
function jsonEntries(text: string): Result<Entries, string> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return refused(`is not valid JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  const pages = Array.isArray(value) ? value : [value];
  if (isEntry(pages.at(-1)) && pages.at(-1)['has_more'] === true)
    return refused('is not whole: has_more is true, so the next page is missing (a list of pages is read, too)');
  const buckets = pages.flatMap((page: unknown) => (isEntry(page) && Array.isArray(page['data']) ? page['data'] : [page]));
  const entries = buckets.flatMap((bucket: unknown) => {
    if (!isEntry(bucket)) return [];
    const { results, ...about } = bucket;
    return Array.isArray(results)
      ? results.flatMap((result) => (isEntry(result) ? [{ ...about, ...flat(result) }] : []))
      : [flat(bucket)];
  });
  const empty = buckets.filter(isEntry).filter(({ results }) => Array.isArray(results) && results.length === 0);
  return done({ entries, empty });
}

function isEntry(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function flat(entry: Entry, path = ''): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(entry).flatMap(([name, value]) =>
      isEntry(value) ? Object.entries(flat(value, `${path}${name}.`)) : [[path + name, value] as const],
    ),
  );
}

/** RFC 4180, with a header. */
function csvEntries(text: string): Result<Entries, string> {
  const read = csvRows(text);
  if (!read.ok) return read;
  const [header, ...rows] = read.value;
  if (header === undefined) return refused('is empty');
  const names = header.map((name) => name.trim());
  const twice = names.find((name, column) => name !== '' && names.indexOf(name) !== column);
  if (twice !== undefined) return refused(`has the column ${twice} twice`);
  if (rows.length === 0)
    return FORMATS.some(({ columns }) => columns.every((name) => names.includes(name)))
      ? done({ entries: [], empty: [] })
      : refused(strangerOf(names));
  const short = rows.findIndex((row) => row.length !== names.length);
  if (short >= 0) return refused(`line ${short + 2} has ${rows[short]?.length ?? 0} fields, not ${names.length}`);
  const entries = rows.map((row) => Object.fromEntries(names.map((name, column) => [name, row[column] ?? ''])));
  return done({ entries, empty: [] });
}

/** Refused where it cannot be read to its end: rows that were left out would agree with everything. */
function csvRows(text: string): Result<string[][], string> {
  const rows: string[][] = [];
  let row: string[] = [];
  const field = /(?:"([^"]*(?:""[^"]*)*)"|([^",\r\n]*))(,|\r?\n|$)/gy;
  for (;;) {
    const from = field.lastIndex;
    const match = field.exec(text);
    if (match === null) {
      const line = text.slice(0, from).split('\n').length;
      return refused(`line ${line} cannot be read: a quotation mark stands where none may`);
    }
    const [whole, quoted, plain = '', end = ''] = match;
    row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end !== ',') {
      if (row.length > 1 || row[0] !== '') rows.push(row);
      row = [];
    }
    if (whole === '' || end === '') return done(rows);
  }
}
