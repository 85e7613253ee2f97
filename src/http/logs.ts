/** The structured log: JSON lines, one an exchange, secrets redacted wherever they could stand. Bodies are never logged. */
import { type DestinationStream, type Logger, pino } from 'pino';

const SECRET_KEYS = [
  'authorization',
  'x-api-key',
  'x-goog-api-key',
  'cookie',
  'proxy-authorization',
  'api_key',
  'apiKey',
  'token',
  'secret',
];
const PATHS = SECRET_KEYS.flatMap((key) => [`["${key}"]`, `*["${key}"]`, `*.*["${key}"]`]);

export function createLogger(level: string, destination?: DestinationStream): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: PATHS, censor: '[redacted]' },
    serializers: { err: pino.stdSerializers.err },
  };
  return destination === undefined ? pino(options, pino.destination({ fd: 2, sync: false })) : pino(options, destination);
}
