/**
 * Traces of exchanges, with OpenTelemetry's GenAI semantic conventions: a server span for the request, a client span for each
 * attempt of an upstream. Off unless configured; off, the W3C context of a client is passed on unchanged. Names and counts only:
 * no text of a prompt, an answer or an upstream's error is ever part of a span.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { ChannelType } from '../../codecs/canonical/dialect.ts';
import { countsOf } from '../../store/day-usage.ts';
import type { AttemptEntry, RequestLogEntry } from '../../store/request-log.ts';
import type { Clock } from '../../streams/clock.ts';
import { CHANNEL_FACTS } from '../config/channel-facts.ts';
import type { Operation } from '../server/route-table.ts';
import type { SpanExporter } from './otlp-exporter.ts';
import type { Attributes } from './span.ts';
import { readTraceContext, type TraceContext, traceHeaders } from './trace-context.ts';

/** The trace of one exchange. */
export interface ExchangeTrace {
  readonly traceId: string;
  /** The headers that carry the context to an upstream: a new span each time it is asked. */
  nextAttempt(): Record<string, string>;
  /** The exchange's row of the request log; called once for each exchange, before `end`. */
  exchanged(entry: RequestLogEntry): void;
  /** The answer is over. `code` is empty for a success. */
  end(answer: { readonly method: string; readonly route: string; readonly status: number; readonly code: string }): void;
}

export interface Tracer {
  /** Undefined while traces are off. */
  start(headers: IncomingHttpHeaders, operation: Operation): ExchangeTrace | undefined;
  close(): Promise<void>;
}

export const noTracer: Tracer = { start: () => undefined, close: () => Promise.resolve() };

export interface TracerOptions {
  readonly exporter: SpanExporter;
  readonly clock: Clock;
  /** Share of traces that begin here; one that a client began keeps the client's decision. */
  readonly sample: number;
  readonly random: () => number;
  /** That many random bytes as hex. */
  readonly hexId: (bytes: number) => string;
}

export function createTracer(options: TracerOptions): Tracer {
  return {
    start(headers, operation) {
      const parent = readTraceContext(headers);
      const sampled = parent?.sampled ?? options.random() < options.sample;
      return startExchange(options, operation, parent, sampled);
    },
    close: () => options.exporter.close(),
  };
}

function startExchange(
  options: TracerOptions,
  operation: Operation,
  parent: TraceContext | undefined,
  sampled: boolean,
): ExchangeTrace {
  const { exporter, clock, hexId } = options;
  const traceId = parent?.traceId ?? hexId(16);
  const spanId = hexId(8);
  const startMs = clock.now();
  const attemptIds: string[] = [];
  const shared = { traceId, ...(parent?.state === undefined ? {} : { traceState: parent.state }) };
  let row: RequestLogEntry | undefined;
  return {
    traceId,
    nextAttempt() {
      const attemptId = hexId(8);
      attemptIds.push(attemptId);
      return traceHeaders({
        traceId,
        spanId: attemptId,
        sampled,
        ...(parent?.state === undefined ? {} : { state: parent.state }),
      });
    },
    exchanged(entry) {
      row = entry;
      if (!sampled) return;
      for (const [index, attempt] of entry.attempts.entries()) {
        const last = index === entry.attempts.length - 1;
        const endMs = last ? entry.startedAtMs + entry.durationMs : attempt.startedAtMs + attempt.durationMs;
        exporter.add({
          ...shared,
          // A request for several pictures tells of several exchanges.
          spanId: attemptIds.shift() ?? hexId(8),
          parentSpanId: spanId,
          name: `${operation} ${attempt.upstreamModel}`,
          kind: 'client',
          startMs: attempt.startedAtMs,
          endMs,
          attributes: { ...attemptAttributes(operation, attempt), ...(last ? answerAttributes(entry) : {}) },
          ...errorOf(attempt.errorCode ?? (last ? entry.errorCode : undefined)),
        });
      }
    },
    end({ method, route, status, code }) {
      if (!sampled) return;
      exporter.add({
        ...shared,
        spanId,
        ...(parent === undefined ? {} : { parentSpanId: parent.spanId }),
        name: `${method} ${route}`,
        kind: 'server',
        startMs,
        endMs: clock.now(),
        attributes: {
          'http.request.method': method,
          'http.route': route,
          'http.response.status_code': status,
          'error.type': code === '' ? undefined : code,
          ...(row === undefined
            ? {}
            : { ...answerAttributes(row), 'mizu.request_id': row.requestId, 'mizu.exchange_id': row.exchangeId }),
        },
        ...errorOf(status >= 500 || (code !== '' && status < 400) ? code : undefined),
      });
    },
  };
}

/** The client's own refusals are no failure of a server span: OpenTelemetry leaves 4xx unset there. */
function errorOf(code: string | undefined): { readonly error?: string } {
  return code === undefined || code === '' ? {} : { error: code };
}

function attemptAttributes(operation: Operation, attempt: AttemptEntry): Attributes {
  const type = attempt.channelType;
  return {
    'gen_ai.operation.name': operation,
    'gen_ai.provider.name': isChannelType(type) ? CHANNEL_FACTS[type].provider : type,
    'gen_ai.request.model': attempt.upstreamModel,
    'http.response.status_code': attempt.upstreamStatus,
    'error.type': attempt.errorCode,
    'mizu.channel': attempt.channelId,
  };
}

function isChannelType(type: string): type is ChannelType {
  return Object.hasOwn(CHANNEL_FACTS, type);
}

/** Input with its cached part, output with its reasoning, as the conventions count. */
function answerAttributes({ model, stream, usage, upstreamModel, firstByteMs }: RequestLogEntry): Attributes {
  const { inputTokens = 0, cachedInputTokens = 0, cacheWriteTokens = 0, outputTokens = 0 } = countsOf(usage);
  return {
    'gen_ai.request.model': model,
    'gen_ai.response.model': upstreamModel,
    'gen_ai.request.stream': stream,
    'gen_ai.response.time_to_first_chunk': firstByteMs === undefined ? undefined : firstByteMs / 1000,
    ...(usage === undefined
      ? {}
      : {
          'gen_ai.usage.input_tokens': inputTokens + cachedInputTokens + cacheWriteTokens,
          'gen_ai.usage.output_tokens': outputTokens,
          'gen_ai.usage.cache_read.input_tokens': cachedInputTokens,
        }),
  };
}
