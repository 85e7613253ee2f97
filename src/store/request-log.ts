/**
 * The request log: one row an exchange, written when it ends. Holds the upstream's full words, so it never reaches a client.
 * Video tasks never enter it.
 */
import type { BillableUsage, Charge } from './charge.ts';

/** `success` also when the client left after the answer had begun; `interrupted` when the gateway died with it open. */
export type RequestStatus = 'success' | 'error' | 'interrupted';

/** One try of an upstream. */
export interface AttemptEntry {
  readonly channelId: string;
  readonly channelType: string;
  readonly upstreamModel: string;
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly upstreamStatus?: number;
  /** The upstream's request id. */
  readonly upstreamRequestId?: string;
  readonly errorCode?: string;
  /** Full text, not sanitised. */
  readonly errorText?: string;
  /** What a failure reported that it used. */
  readonly usage?: BillableUsage;
  /** The logical model that was tried, where it is a fallback of the one that was asked for. */
  readonly model?: string;
}

export interface RequestLogEntry {
  /** The gateway's own id of the exchange: the ledger's identity. */
  readonly exchangeId: string;
  /** What the answer carried as its request id. */
  readonly requestId: string;
  /** What the client sent as its own, when it did. */
  readonly clientRequestId?: string;
  readonly accountId: string;
  readonly keyId: string;
  /** The route's name: `chat_completions`, `responses`, … */
  readonly endpoint: string;
  /** As the client asked for it. */
  readonly model: string;
  /** The logical model that answered, and at whose price the exchange is charged, where it is a fallback of that one. */
  readonly servedModel?: string;
  readonly upstreamModel?: string;
  readonly channelId?: string;
  readonly channelType?: string;
  readonly stream: boolean;
  readonly status: RequestStatus;
  readonly httpStatus?: number;
  readonly errorCode?: string;
  /** Full text, not sanitised. */
  readonly errorText?: string;
  readonly clientGone?: boolean;
  readonly startedAtMs: number;
  readonly durationMs: number;
  /** From the start to the first words of the answer; heads and keep-alives are none. */
  readonly firstByteMs?: number;
  /** The same: words are the first bytes that count. */
  readonly firstOutputMs?: number;
  /** From the start to the last words. */
  readonly lastOutputMs?: number;
  readonly ip?: string;
  readonly effort?: string;
  readonly usage?: BillableUsage;
  /** Members of the upstream's usage object that are not read, as JSON text. */
  readonly usageJson?: string;
  readonly charge?: Charge;
  readonly attempts: readonly AttemptEntry[];
  readonly affinity?: { readonly hit: boolean; readonly target: string };
  /** The end user whom the client names (`safety_identifier`, `user`, `metadata.user_id`), of at most 256 characters. */
  readonly endUser?: string;
  /**
   * What of the request its upstream's protocol has in another form, or not at all: names of
   * [docs/losses.md](../../docs/losses.md). Absent: nothing.
   */
  readonly losses?: readonly string[];
  /** The same of the answer and its client's protocol. */
  readonly answerLosses?: readonly string[];
}

/** A row as it is stored: `seq` rises with the time of logging and is the cursor. */
export interface RequestLogRow extends RequestLogEntry {
  readonly seq: number;
  readonly loggedAtMs: number;
}

export interface RequestLogQuery {
  readonly keyId?: string;
  readonly accountId?: string;
  readonly model?: string;
  /** That answered, or that was asked last. */
  readonly channelId?: string;
  readonly status?: RequestStatus;
  /** Its error code; of a row without one that is no success, its status. */
  readonly code?: string;
  readonly sinceMs?: number;
  readonly untilMs?: number;
  /** Only rows with a greater seq (oldest first): for following. */
  readonly after?: number;
  /** Only rows with a smaller seq (newest first, the default direction): for paging. */
  readonly before?: number;
  /** Only rows with a greater seq, in whichever direction: bounds what is looked through. */
  readonly above?: number;
  /** 1 to 1000, default 100. */
  readonly limit?: number;
}

export interface RequestLog {
  /** By exchange id, request id or the client's own request id (of at most 256 characters); newest first. */
  find(id: string): Promise<RequestLogRow[]>;
  list(query?: RequestLogQuery): Promise<RequestLogRow[]>;
  /** The cursor from which a follower starts: the newest seq. */
  head(): Promise<number>;
  /** Removes rows logged before `beforeMs`; returns how many. */
  prune(beforeMs: number): Promise<number>;
}
