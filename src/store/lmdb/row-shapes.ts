/** The shapes of the rows that every exchange adds or changes. Their order is the format of the store: new members go to the end. */
import type { BillableUsage, Charge, ChargeLine } from '../charge.ts';
import type { JournalRow } from '../ledger.ts';
import type { AttemptEntry, RequestLogEntry, RequestLogRow } from '../request-log.ts';
import type { SpendRow } from '../spend-windows.ts';
import { INTEGER, listed, listOf, PAIRS } from './listed.ts';

const USAGE = listed<BillableUsage>({
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
});

const ATTEMPT = listed<AttemptEntry>({
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
});

const LINE = listed<ChargeLine>({
  item: 'plain',
  billedAs: 'plain',
  quantity: 'plain',
  rate: INTEGER,
  per: 'plain',
  amount: INTEGER,
});

const CHARGE = listed<Charge>({ lines: listOf(LINE), total: INTEGER, flags: 'plain' });

const AFFINITY = listed<NonNullable<RequestLogEntry['affinity']>>({ hit: 'plain', target: 'plain' });

export const LOG_ROW = listed<RequestLogRow>({
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
  attempts: listOf(ATTEMPT),
  affinity: AFFINITY,
});

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
});

export const SPEND_ROW = listed<SpendRow>({
  total: 'plain',
  hour: 'plain',
  hourly: 'plain',
  day: 'plain',
  daily: 'plain',
  held: 'plain',
});
