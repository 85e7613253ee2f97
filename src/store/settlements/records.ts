/** The lines of the settlement log: exchanges that were opened, and settlements as the engine keeps them. */
import { type OpenExchange, openFields } from '../settlement.ts';
import { StoreError } from '../store-error.ts';
import type { Lines } from './segment.ts';

const OPENED = 'o';
const SETTLED = 's';

export type LogRecord =
  | { readonly kind: 'opened'; readonly exchange: OpenExchange }
  | { readonly kind: 'settled'; readonly text: string };

export function addOpening(lines: Lines, exchange: OpenExchange): void {
  lines.add(OPENED + JSON.stringify(openFields(exchange)));
}

/** `text` holds no line break. */
export function addSettlement(lines: Lines, text: string): void {
  lines.add(SETTLED + text);
}

/** Undefined for a line of a kind that this version does not write: a newer one may have. */
export function recordOf(content: string): LogRecord | undefined {
  if (content.startsWith(OPENED)) return { kind: 'opened', exchange: exchangeOf(content.slice(OPENED.length)) };
  if (content.startsWith(SETTLED)) return { kind: 'settled', text: content.slice(SETTLED.length) };
  return content.startsWith('{') ? spooledRecord(content) : undefined;
}

/** As version 0.1 wrote them, on PostgreSQL alone. */
function spooledRecord(content: string): LogRecord | undefined {
  const { settle, open } = JSON.parse(content) as { readonly settle?: string; readonly open?: string };
  if (settle !== undefined) return { kind: 'settled', text: settle };
  return open === undefined ? undefined : { kind: 'opened', exchange: exchangeOf(open) };
}

/** Only this room writes such text. Throws `StoreError` `corrupt` on anything else. */
export function exchangeOf(json: string): OpenExchange {
  const value: unknown = JSON.parse(json);
  if (isOpenExchange(value)) return value;
  throw new StoreError('corrupt', 'an open exchange is not one');
}

function isOpenExchange(value: unknown): value is OpenExchange {
  return (
    typeof value === 'object' &&
    value !== null &&
    'exchangeId' in value &&
    typeof value.exchangeId === 'string' &&
    'keyId' in value &&
    typeof value.keyId === 'string' &&
    'startedAtMs' in value &&
    typeof value.startedAtMs === 'number'
  );
}
