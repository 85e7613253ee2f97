/** One finished span in OTLP's JSON form, and its attributes. Knows the wire shape and no meaning. */

export type AttributeValue = string | number | boolean | readonly string[];
export type Attributes = Readonly<Record<string, AttributeValue | undefined>>;

/** OTLP's numbers. */
const SPAN_KIND = { server: 2, client: 3 } as const;

export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly traceState?: string;
  readonly name: string;
  readonly kind: keyof typeof SPAN_KIND;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  /** Set where the span failed: a code of ours, no text of others. */
  readonly error?: string;
}

/** 64-bit integers are decimal strings in OTLP's JSON, ids are hex. */
export function encodeSpan(span: Span): object {
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    ...(span.parentSpanId === undefined ? {} : { parentSpanId: span.parentSpanId }),
    ...(span.traceState === undefined ? {} : { traceState: span.traceState }),
    name: span.name,
    kind: SPAN_KIND[span.kind],
    startTimeUnixNano: nanos(span.startMs),
    endTimeUnixNano: nanos(Math.max(span.startMs, span.endMs)),
    attributes: encodeAttributes(span.attributes),
    status: span.error === undefined ? {} : { code: 2, message: span.error },
  };
}

export function encodeAttributes(attributes: Attributes): object[] {
  const encoded: object[] = [];
  for (const [key, value] of Object.entries(attributes))
    if (value !== undefined) encoded.push({ key, value: encodeValue(value) });
  return encoded;
}

function encodeValue(value: AttributeValue): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number') return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  return { arrayValue: { values: value.map((text) => ({ stringValue: text })) } };
}

function nanos(ms: number): string {
  return `${BigInt(Math.round(ms * 1000)) * 1000n}`;
}
