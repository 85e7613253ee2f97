/**
 * The shapes of the rows that every exchange adds or changes. Their order is the format of the store: new members go to the end.
 */
import type { BillableUsage, Charge, ChargeLine, UsagePass } from '../charge.ts';
import type { JournalRow } from '../ledger.ts';
import type { AttemptEntry, RequestLogEntry, RequestLogRow } from '../request-log.ts';
import type { SpendRow } from '../spend-windows.ts';
import { INTEGER, listed, listOf, PAIRS } from './listed.ts';
import { listText } from './text-encoder.ts';

const PASSES = listOf(
  listed<UsagePass>({
    type: 'plain',
    model: 'plain',
    input: 'plain',
    cachedInput: 'plain',
    cacheWrite5m: 'plain',
    cacheWrite1h: 'plain',
    cacheWriteUnsplit: 'plain',
    output: 'plain',
  }),
);

const USAGE = listed<BillableUsage>(
  {
    input: 'plain',
    cachedInput: 'plain',
    cacheWrite5m: 'plain',
    cacheWrite1h: 'plain',
    cacheWriteUnsplit: 'plain',
    output: 'plain',
    reasoning: 'plain',
    imageInput: 'plain',
    imageOutput: 'plain',
    images: 'plain',
    videos: 'plain',
    meters: PAIRS,
    serviceTier: 'plain',
    cacheWrite30m: 'plain',
    cacheWrite12h: 'plain',
    speed: 'plain',
    geo: 'plain',
    audioInput: 'plain',
    audioOutput: 'plain',
    model: 'plain',
    passes: PASSES,
  },
  (usage) => [
    usage.input,
    usage.cachedInput,
    usage.cacheWrite5m,
    usage.cacheWrite1h,
    usage.cacheWriteUnsplit,
    usage.output,
    usage.reasoning,
    usage.imageInput,
    usage.imageOutput,
    usage.images,
    usage.videos,
    usage.meters && PAIRS.list(usage.meters),
    usage.serviceTier,
    usage.cacheWrite30m,
    usage.cacheWrite12h,
    usage.speed,
    usage.geo,
    usage.audioInput,
    usage.audioOutput,
    usage.model,
    usage.passes && PASSES.list(usage.passes),
  ],
);

const ATTEMPT = listed<AttemptEntry>(
  {
    channelId: 'plain',
    channelType: 'plain',
    upstreamModel: 'plain',
    startedAtMs: 'plain',
    durationMs: 'plain',
    upstreamStatus: 'plain',
    upstreamRequestId: 'plain',
    errorCode: 'plain',
    errorText: 'plain',
    usage: USAGE,
    model: 'plain',
  },
  (attempt) => [
    attempt.channelId,
    attempt.channelType,
    attempt.upstreamModel,
    attempt.startedAtMs,
    attempt.durationMs,
    attempt.upstreamStatus,
    attempt.upstreamRequestId,
    attempt.errorCode,
    attempt.errorText,
    attempt.usage && USAGE.list(attempt.usage),
    attempt.model,
  ],
);

const LINE = listed<ChargeLine>(
  {
    item: 'plain',
    billedAs: 'plain',
    quantity: 'plain',
    rate: INTEGER,
    per: 'plain',
    amount: INTEGER,
    multiplier: 'plain',
    model: 'plain',
  },
  (line) => [
    line.item,
    line.billedAs,
    line.quantity,
    INTEGER.list(line.rate),
    line.per,
    INTEGER.list(line.amount),
    line.multiplier,
    line.model,
  ],
);

const LINES = listOf(LINE);

const CHARGE = listed<Charge>({ lines: LINES, total: INTEGER, flags: 'plain' }, ({ lines, total, flags }) => [
  LINES.list(lines),
  INTEGER.list(total),
  flags,
]);

const AFFINITY = listed<NonNullable<RequestLogEntry['affinity']>>({ hit: 'plain', target: 'plain' }, ({ hit, target }) => [
  hit,
  target,
]);

const ATTEMPTS = listOf(ATTEMPT);

export const LOG_ROW = listed<RequestLogRow>(
  {
    seq: 'plain',
    loggedAtMs: 'plain',
    exchangeId: 'plain',
    requestId: 'plain',
    clientRequestId: 'plain',
    accountId: 'plain',
    keyId: 'plain',
    endpoint: 'plain',
    model: 'plain',
    upstreamModel: 'plain',
    channelId: 'plain',
    channelType: 'plain',
    stream: 'plain',
    status: 'plain',
    httpStatus: 'plain',
    errorCode: 'plain',
    errorText: 'plain',
    clientGone: 'plain',
    startedAtMs: 'plain',
    durationMs: 'plain',
    firstByteMs: 'plain',
    firstOutputMs: 'plain',
    lastOutputMs: 'plain',
    ip: 'plain',
    effort: 'plain',
    usage: USAGE,
    usageJson: 'plain',
    charge: CHARGE,
    attempts: ATTEMPTS,
    affinity: AFFINITY,
    servedModel: 'plain',
    endUser: 'plain',
    losses: 'plain',
    answerLosses: 'plain',
  },
  (row) => [
    row.seq,
    row.loggedAtMs,
    row.exchangeId,
    row.requestId,
    row.clientRequestId,
    row.accountId,
    row.keyId,
    row.endpoint,
    row.model,
    row.upstreamModel,
    row.channelId,
    row.channelType,
    row.stream,
    row.status,
    row.httpStatus,
    row.errorCode,
    row.errorText,
    row.clientGone,
    row.startedAtMs,
    row.durationMs,
    row.firstByteMs,
    row.firstOutputMs,
    row.lastOutputMs,
    row.ip,
    row.effort,
    row.usage && USAGE.list(row.usage),
    row.usageJson,
    row.charge && CHARGE.list(row.charge),
    ATTEMPTS.list(row.attempts),
    row.affinity && AFFINITY.list(row.affinity),
    row.servedModel,
    row.endUser,
    row.losses,
    row.answerLosses,
  ],
);

export const JOURNAL_ROW = listed<JournalRow>({
  seq: 'plain',
  atMs: 'plain',
  kind: 'plain',
  ref: 'plain',
  from: 'plain',
  to: 'plain',
  nanos: INTEGER,
  accountId: 'plain',
  keyId: 'plain',
  by: 'plain',
  note: 'plain',
  hash: 'plain',
  state: 'plain',
});

export const SPEND_ROW = listed<SpendRow>({
  total: 'plain',
  hour: 'plain',
  hourly: 'plain',
  day: 'plain',
  daily: 'plain',
  held: 'plain',
});

/** A row of the request log before it has its place: both are 0 in the text. */
const NO_PLACE = '[0,0';

export function entryText(entry: RequestLogEntry): string {
  return listText(LOG_ROW.list({ ...entry, seq: 0, loggedAtMs: 0 }));
}

/** The text of the row in its place. */
export function placedText(text: string, seq: number, loggedAtMs: number): string {
  return `[${seq},${loggedAtMs}${text.slice(NO_PLACE.length)}`;
}

/** The inverse of {@link entryText}. Throws `SyntaxError` on text that is no JSON. */
export function entryOf(text: string): RequestLogEntry {
  const { seq: _seq, loggedAtMs: _loggedAtMs, ...entry } = LOG_ROW.value(JSON.parse(text));
  return entry;
}
