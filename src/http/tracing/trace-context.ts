/**
 * W3C Trace Context: reads, checks and writes `traceparent` and `tracestate`. Knows no span and no exporter. A malformed
 * header is ignored: it is neither continued nor passed on.
 */
import type { IncomingHttpHeaders } from 'node:http';

export interface TraceContext {
  /** 32 hex digits, not all zero. */
  readonly traceId: string;
  /** 16 hex digits, not all zero: the caller's span. */
  readonly spanId: string;
  readonly sampled: boolean;
  /** `tracestate`, passed on unchanged. */
  readonly state?: string;
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
/** The length that every system must be able to propagate. */
const MAX_STATE_CHARS = 512;

/** Undefined for none, and for one that may not be used. */
export function readTraceContext(headers: IncomingHttpHeaders): TraceContext | undefined {
  const found = TRACEPARENT.exec(headerText(headers['traceparent']));
  if (found === null) return undefined;
  const [, version = '', traceId = '', spanId = '', flags = '', rest] = found;
  if (version === 'ff' || (version === '00' && rest !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  const state = headerText(headers['tracestate']).trim();
  const usable = state !== '' && state.length <= MAX_STATE_CHARS && /^[\x20-\x7e]+$/.test(state);
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1, ...(usable ? { state } : {}) };
}

/** The two headers that carry a context to the next system. */
export function traceHeaders({ traceId, spanId, sampled, state }: TraceContext): Record<string, string> {
  return {
    traceparent: `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`,
    ...(state === undefined ? {} : { tracestate: state }),
  };
}

function headerText(value: string | string[] | undefined): string {
  return Array.isArray(value) ? value.join(',') : (value ?? '');
}
