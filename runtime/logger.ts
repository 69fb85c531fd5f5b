import { pino } from 'pino';
import type { DestinationStream, Logger } from 'pino';

export type { Logger } from 'pino';

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

/**
 * Fields whose values never reach a log line, at any depth. Code should not log card numbers and
 * secrets anyway; this list is the second protection.
 */
export const SECRET_FIELDS: ReadonlySet<string> = new Set([
  'authorization',
  'cookie',
  'set-cookie',
  'xpay-signature',
  'webhook-signature',
  'password',
  'secret',
  'eventSigner',
  'databaseUrl',
  'gatewayKey',
  'credentialPepper',
  'encryptionKey',
  'sessionKey',
  'cardNumber',
  'number',
  'cvc',
  'email',
  'contactNumber',
  'customerDetails',
  'billingDetails',
]);

/** A record is cut off below this depth: it may be cyclic. */
const DEEPEST = 5;

/**
 * A logger that writes one JSON object a line to stdout. Each line has `name` and an ISO time. The
 * values of {@link SECRET_FIELDS} are blanked. Pass `destination` only in tests.
 */
export function createLogger(
  options: { name: string; level?: LogLevel },
  destination?: DestinationStream,
): Logger {
  const settings = {
    name: options.name,
    level: options.level ?? 'info',
    base: { pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    // For a child logger's own fields, which no formatter sees.
    redact: { paths: [...SECRET_FIELDS].map(asPath), censor: '[redacted]' },
    // Custom code: pino's own redaction of wildcard paths takes 70 µs a line, this takes 2 µs.
    formatters: {
      level: (label: string) => ({ level: label }),
      log: (record: object) => withoutSecrets(record, 0),
    },
  };
  return destination === undefined ? pino(settings) : pino(settings, destination);
}

function withoutSecrets(record: object, depth: number): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(record)) {
    copy[key] = SECRET_FIELDS.has(key) ? '[redacted]' : loggable(value, depth + 1);
  }
  return copy;
}

function loggable(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (depth > DEEPEST) return '[cut off]';
  if (Array.isArray(value)) return value.map((item: unknown) => loggable(item, depth + 1));
  // Errors, dates and similar objects have their own text form.
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  return withoutSecrets(value, depth);
}

const asPath = (field: string): string => (/^\w+$/.test(field) ? field : `["${field}"]`);
