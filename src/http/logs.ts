/** The structured log: JSON lines, one an exchange, secrets redacted wherever they could stand. Bodies are never logged. */
import { type DestinationStream, type Logger, pino } from 'pino';

/** Members that are never printed, at the first three levels of what is logged. */
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
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: {
      level: (label: string) => ({ level: label }),
      // Pino's own `redact` compiles its paths anew for every line: 40 µs each.
      log: (members: Record<string, unknown>) => withoutSecrets(members, LEVELS),
    },
    serializers: { err: pino.stdSerializers.err },
  };
  return destination === undefined ? pino(options, pino.destination({ fd: 2, sync: false })) : pino(options, destination);
}

/** The same value where it holds no secret; otherwise a copy without them. Errors and the like are for the serializers. */
function withoutSecrets<T extends object>(members: T, levels: number): T {
  let copy: Map<string, unknown> | undefined;
  for (const key in members) {
    const value: unknown = members[key];
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
