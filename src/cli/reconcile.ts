/**
 * `mizu ledger reconcile`: the request log of a Channel against the vendor's own usage export, by UTC day and model, with the
 * rows behind each difference. Changes nothing. Exit code 1 where they differ.
 */
import { type Static, Type } from 'typebox';
import type { ChannelType } from '../codecs/canonical/dialect.ts';
import { InputError, RefusedError } from '../http/admin/refusals.ts';
import { cacheWritesOf } from '../store/day-usage.ts';
import type { BillableUsage, UsagePass } from '../store/charge.ts';
import type { RequestLogRow } from '../store/request-log.ts';
import { dayName, dayNumber, dayOf } from '../store/spend-windows.ts';
import { REPORTED_COUNTS, readUsageReport, type ReportedCount, type UsageReport, type Vendor } from '../store/usage-report.ts';
import { table, type Verb, type VerbContext, verb } from './verb.ts';

const DAY_MS = 86_400_000;
const PAGE = 1000;
/** A row is logged at its end, which is hours after its beginning at the most. */
const LONGEST_MS = DAY_MS;
/** Rows that are printed for a difference; JSON has all of them. */
const SHOWN = 10;

const Reconcile = Type.Object(
  {
    channel: Type.String({ description: 'The Channel whose vendor made the export.' }),
    file: Type.String({ description: 'The export.' }),
  },
  { additionalProperties: false },
);

/** Whose export a Channel of this type is compared with. */
const VENDOR: Partial<Record<ChannelType, Vendor>> = { chat_completion: 'OpenAI', responses: 'OpenAI', messages: 'Anthropic' };

type Counts = Record<ReportedCount, number>;

/** A row of the log, and what may explain that the vendor counted otherwise. */
export interface RowBehind {
  readonly requestId: string;
  readonly counts: Counts;
  /** `estimated`, `client_gone`, an error code. */
  readonly because: readonly string[];
}

export interface Mismatch {
  readonly day: string;
  readonly model: string;
  /** Ours minus the vendor's, of each count that both have and that differs. */
  readonly differences: Readonly<Partial<Record<ReportedCount, { readonly ours: number; readonly vendors: number }>>>;
  /** Those that may explain it first. */
  readonly rows: readonly RowBehind[];
}

export interface Reconciliation {
  readonly channel: string;
  readonly vendor: Vendor;
  readonly from: string;
  readonly to: string;
  /** Days and models that were compared. */
  readonly compared: number;
  readonly mismatches: readonly Mismatch[];
}

async function reconcile(context: VerbContext, { channel: id, file }: Static<typeof Reconcile>): Promise<Reconciliation> {
  const { channels, disabledChannels } = context.config();
  const channel = [...channels, ...disabledChannels].find((one) => one.id === id);
  if (channel === undefined) throw new RefusedError(`there is no Channel ${id}`, 'unknown', 'unknown_channel');
  const vendor = VENDOR[channel.type];
  if (vendor === undefined)
    throw new InputError(
      (name) => `${name('channel')} ${id} is of type ${channel.type}: OpenAI's and Anthropic's exports are read`,
    );
  const report = readUsageReport(context.readFile(file));
  if (!report.ok) throw new RefusedError(`${file} ${report.refusal}`, 'invalid', 'invalid_export');
  if (report.value.vendor !== vendor)
    throw new RefusedError(
      `${file} is ${report.value.vendor}'s usage export, and the Channel ${id} of type ${channel.type} is compared with ${vendor}'s`,
      'invalid',
      'invalid_export',
    );
  return await compare(context, id, report.value);
}

interface Place {
  readonly day: string;
  readonly model: string;
  readonly rows: RowBehind[];
}

async function compare(context: VerbContext, channel: string, report: UsageReport): Promise<Reconciliation> {
  const { vendor, from, to, uses } = report;
  const ours = new Map<string, Place>();
  for await (const row of rowsBetween(context, from, to)) {
    for (const { day, model, ...behind } of usesOf(row, channel)) {
      if (day < from || day > to) continue;
      const name = placeOf(day, model);
      const place = ours.get(name) ?? { day, model, rows: [] };
      place.rows.push(behind);
      ours.set(name, place);
    }
  }
  const theirs = new Map<string, { day: string; model: string; counts: Partial<Counts> }>();
  for (const { day, model, counts } of uses) {
    const known = theirs.get(placeOf(day, model));
    const sum: Partial<Counts> = { ...known?.counts };
    for (const count of REPORTED_COUNTS) if (counts[count] !== undefined) sum[count] = (sum[count] ?? 0) + counts[count];
    theirs.set(placeOf(day, model), { day, model: known?.model ?? model, counts: sum });
  }
  const reports = new Set(uses.flatMap(({ counts }) => REPORTED_COUNTS.filter((count) => counts[count] !== undefined)));
  const places = [...new Set([...ours.keys(), ...theirs.keys()])].sort();
  const mismatches = places.flatMap((name) => mismatchOf(ours.get(name), theirs.get(name), reports));
  return { channel, vendor, from, to, compared: places.length, mismatches };
}

function mismatchOf(
  ours: Place | undefined,
  theirs: { readonly day: string; readonly model: string; readonly counts: Partial<Counts> } | undefined,
  reports: ReadonlySet<ReportedCount>,
): Mismatch[] {
  const rows = ours?.rows ?? [];
  const differences = Object.fromEntries(
    REPORTED_COUNTS.flatMap((count) => {
      const mine = rows.reduce((sum, { counts }) => sum + counts[count], 0);
      const vendors = theirs?.counts[count] ?? 0;
      return mine === vendors || !reports.has(count) ? [] : [[count, { ours: mine, vendors }] as const];
    }),
  );
  if (Object.keys(differences).length === 0) return [];
  const { day = '', model = '' } = theirs ?? ours ?? {};
  return [{ day, model, differences, rows: rows.toSorted((a, b) => b.because.length - a.because.length) }];
}

/** Vendors name the same model with and without the day of its making. */
function placeOf(day: string, model: string): string {
  return `${day} ${model.replace(/-(?:\d{8}|\d{4}-\d{2}-\d{2})$/, '')}`;
}

async function* rowsBetween(context: VerbContext, from: string, to: string): AsyncGenerator<RequestLogRow> {
  const { requestLog } = await context.store();
  const sinceMs = (dayNumber(from) ?? 0) * DAY_MS;
  const untilMs = ((dayNumber(to) ?? 0) + 1) * DAY_MS + LONGEST_MS;
  const signal = context.interrupted();
  let before: number | undefined;
  for (;;) {
    const page = await requestLog.list({ limit: PAGE, sinceMs, untilMs, ...(before === undefined ? {} : { before }) });
    yield* page;
    before = page.at(-1)?.seq;
    if (page.length < PAGE) return;
    signal.throwIfAborted();
  }
}

interface Use extends RowBehind {
  readonly day: string;
  readonly model: string;
}

/**
 * What the vendor of the Channel was asked for by an exchange: its answer with its passes, and failures that reported what they
 * used.
 */
function usesOf(row: RequestLogRow, channel: string): Use[] {
  const { requestId, attempts, channelId, usage, charge, clientGone, errorCode } = row;
  const uses: Use[] = [];
  for (const [index, attempt] of attempts.entries()) {
    if (attempt.channelId !== channel) continue;
    const isAnswer = channelId !== undefined && index === attempts.length - 1;
    const used = isAnswer ? usage : attempt.usage;
    if (used === undefined) continue;
    const day = dayName(dayOf(attempt.startedAtMs));
    const because = [
      ...(isAnswer && charge?.flags.includes('estimated') === true ? ['estimated'] : []),
      ...(isAnswer && clientGone === true ? ['client_gone'] : []),
      ...(isAnswer ? [errorCode] : [attempt.errorCode]).filter((code) => code !== undefined),
    ];
    const { passes = [], model, ...main } = used;
    uses.push({ day, model: model ?? attempt.upstreamModel, requestId, counts: countsOf(main, 1), because });
    for (const pass of passes)
      uses.push({ day, model: pass.model, requestId, counts: countsOf(pass, 0), because: [...because, pass.type] });
  }
  return uses;
}

function countsOf(usage: BillableUsage | UsagePass, requests: number): Counts {
  const {
    input = 0,
    imageInput = 0,
    audioInput = 0,
    output = 0,
    reasoning = 0,
    imageOutput = 0,
    audioOutput = 0,
  }: BillableUsage = usage;
  return {
    requests,
    input: input + imageInput + audioInput,
    cachedInput: usage.cachedInput ?? 0,
    cacheWrite: cacheWritesOf(usage),
    output: output + reasoning + imageOutput + audioOutput,
  };
}

const NAMES: Readonly<Record<ReportedCount, string>> = {
  requests: 'requests',
  input: 'uncached input',
  cachedInput: 'cached input',
  cacheWrite: 'cache writes',
  output: 'output',
};

function textOf({ channel, vendor, from, to, compared, mismatches }: Reconciliation): string {
  const head = `${channel} against ${vendor}, ${from} to ${to}: ${compared} days and models compared, ${mismatches.length} differ`;
  return [head, ...mismatches.flatMap(linesOf)].join('\n');
}

function linesOf({ day, model, differences, rows }: Mismatch): string[] {
  const counts = REPORTED_COUNTS.flatMap((count) => {
    const differs = differences[count];
    if (differs === undefined) return [];
    const { ours, vendors } = differs;
    return [[day, model, NAMES[count], String(ours), String(vendors), `${ours > vendors ? '+' : ''}${ours - vendors}`]];
  });
  const behind = rows
    .slice(0, SHOWN)
    .map(({ requestId, counts: its, because }) =>
      `  ${requestId} ${its.input}/${its.cachedInput}/${its.cacheWrite}/${its.output} ${because.join(' ')}`.trimEnd(),
    );
  const more = rows.length > SHOWN ? [`  and ${rows.length - SHOWN} more (--json)`] : [];
  return [table([['DAY', 'MODEL', 'COUNT', 'OURS', "VENDOR'S", 'DIFFERENCE'], ...counts]), ...behind, ...more];
}

export const RECONCILE: Verb = verb({
  name: 'ledger reconcile',
  usage: 'reconcile --channel ID FILE',
  does: "Compares the request log of a Channel with the vendor's own usage export, by UTC day and model. Exit code 1 where they differ.",
  options: Reconcile,
  arguments: ['file'],
  run: reconcile,
  text: textOf,
  code: ({ mismatches }) => (mismatches.length === 0 ? 0 : 1),
});
