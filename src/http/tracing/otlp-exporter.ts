/**
 * Sends finished spans to a collector by OTLP over HTTP with JSON, in batches and off the hot path: a collector that is slow or
 * down costs spans, never a request.
 */
import { request } from 'undici';
import type { Clock, Timer } from '../../streams/clock.ts';
import { type Attributes, encodeAttributes, encodeSpan, type Span } from './span.ts';

export interface OtlpOptions {
  /** The collector's base, such as `http://127.0.0.1:4318`; `/v1/traces` is appended unless it is there. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  /** `service.name` and what else names this process. */
  readonly resource: Attributes;
  readonly clock: Clock;
  /** Called once a batch with the number of spans that a failure, or a full queue, lost. */
  readonly onLost: (count: number, error: unknown) => void;
}

export interface SpanExporter {
  /** Never waits, never throws. */
  add(span: Span): void;
  /** Sends what waits, until the collector fails once; resolves when that is over, well or not. */
  close(): Promise<void>;
}

const BATCH = 512;
/** Spans beyond this queue length are lost. */
const MAX_WAITING = 4096;
const FLUSH_MS = 2_000;
const SEND_MS = 10_000;

export function createOtlpExporter(options: OtlpOptions): SpanExporter {
  const url = tracesUrl(options.endpoint);
  const waiting: Span[] = [];
  let timer: Timer | undefined;
  let sending: Promise<void> | undefined;
  let closing = false;
  /** Spans lost to a full queue since the last batch. */
  let overflowed = 0;

  const flush = (): Promise<void> => {
    timer?.cancel();
    timer = undefined;
    sending ??= sendAll().finally(() => {
      sending = undefined;
    });
    return sending;
  };
  const sendAll = async (): Promise<void> => {
    while (waiting.length > 0) {
      const batch = waiting.splice(0, BATCH);
      try {
        await send(url, batch, options);
      } catch (error) {
        // At shutdown one failure ends it: each further batch could take SEND_MS, longer than a supervisor waits.
        const givenUp = closing ? waiting.splice(0) : [];
        options.onLost(batch.length + givenUp.length, error);
      }
      reportOverflow();
    }
  };
  const reportOverflow = (): void => {
    if (overflowed > 0) options.onLost(overflowed, new Error('the queue of spans is full'));
    overflowed = 0;
  };

  return {
    add(span) {
      if (waiting.length >= MAX_WAITING) {
        overflowed += 1;
        return;
      }
      waiting.push(span);
      if (waiting.length >= BATCH) void flush();
      else timer ??= options.clock.setTimeout(() => void flush(), FLUSH_MS);
    },
    async close() {
      closing = true;
      await flush();
    },
  };
}

function tracesUrl(endpoint: string): string {
  const base = endpoint.replace(/\/+$/, '');
  return base.endsWith('/v1/traces') ? base : `${base}/v1/traces`;
}

async function send(url: string, batch: readonly Span[], options: OtlpOptions): Promise<void> {
  const { statusCode, body } = await request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...options.headers },
    body: JSON.stringify({
      resourceSpans: [
        {
          resource: { attributes: encodeAttributes(options.resource) },
          scopeSpans: [{ scope: { name: 'mizu' }, spans: batch.map(encodeSpan) }],
        },
      ],
    }),
    signal: AbortSignal.timeout(SEND_MS),
  });
  await body.dump();
  if (statusCode >= 300) throw new Error(`the collector answered ${statusCode}`);
}
