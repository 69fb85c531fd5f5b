import { pino } from 'pino';
import type { DestinationStream, Logger } from 'pino';

export type { Logger } from 'pino';

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

/**
 * Fields that never reach a log line, at the top of a record or one or two levels down.
 * Card numbers and secrets should not be logged in the first place; this is the second lock.
 */
const SECRET_FIELDS = [
  'authorization',
  'cookie',
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
  'xpay-signature',
  'webhook-signature',
  'set-cookie',
] as const;

/** The pino paths behind {@link SECRET_FIELDS}; exported so that a test can walk them. */
export const REDACTED_PATHS: readonly string[] = SECRET_FIELDS.flatMap((field) => {
  const key = /^[A-Za-z]+$/.test(field) ? `.${field}` : `["${field}"]`;
  return [key.replace(/^\./, ''), `*${key}`, `*.*${key}`];
});

/**
 * A logger that writes one JSON object a line to stdout, with `name` on each line, ISO times and
 * {@link REDACTED_PATHS} blanked. Give `destination` only in tests.
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
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: [...REDACTED_PATHS], censor: '[redacted]' },
  };
  return destination === undefined ? pino(settings) : pino(settings, destination);
}
