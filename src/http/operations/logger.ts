/** The structured log: JSON lines, one for each exchange, with secrets redacted. Bodies are never logged. */
import { type DestinationStream, type Logger, pino } from 'pino';
import { standardError } from './standard-error.ts';

/** Members that are redacted in the first three levels of an object. */
const SECRET_KEYS: ReadonlySet<string> = new Set([
  'authorization',
  'x-api-key',
  'x-goog-api-key',
  'cookie',
  'proxy-authorization',
  'api_key',
  'apiKey',
  'token',
  'secret',
]);
const LEVELS = 3;
const CENSOR = '[redacted]';

export function createLogger(level: string, destination?: DestinationStream): Logger {
  const options = {
    level,
    base: null,
    timestamp: isoTime(),
    formatters: {
      level: (label: string) => ({ level: label }),
      // Pino's own `redact` compiles its paths anew for every line: 40 µs each.
      log: (members: Record<string, unknown>) => withoutSecrets(members, LEVELS),
    },
    serializers: { err: pino.stdSerializers.err },
  };
  return pino(options, destination ?? standardError());
}

/** Pino's ISO timestamp, formatted once a millisecond. */
function isoTime(): () => string {
  let at = 0;
  let text = '';
  return () => {
    const now = Date.now();
    if (now !== at) {
      at = now;
      text = `,"time":"${new Date(now).toISOString()}"`;
    }
    return text;
  };
}

/**
 * The value itself where it holds no secret, otherwise a redacted copy. Only plain objects and arrays are searched; errors have
 * serializers.
 */
function withoutSecrets<T extends object>(members: T, levels: number): T {
  let copy: Map<string, unknown> | undefined;
  // Not `for … in`: once it has met objects of several forms, V8 compiles and throws away such a loop again and again.
  for (const key of Object.keys(members)) {
    const value = (members as Record<string, unknown>)[key];
    const shown = SECRET_KEYS.has(key) ? CENSOR : levels > 1 && isPlain(value) ? withoutSecrets(value, levels - 1) : value;
    if (shown === value) continue;
    copy ??= new Map(Object.entries(members));
    copy.set(key, shown);
  }
  if (copy === undefined) return members;
  return (Array.isArray(members) ? [...copy.values()] : Object.fromEntries(copy)) as T;
}

function isPlain(value: unknown): value is object {
  return (
    Array.isArray(value) || (typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype)
  );
}
