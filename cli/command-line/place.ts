import { keyRingOf } from '../../runtime/sealing.ts';
import { listOf } from '../../runtime/environment.ts';
import type { Environment } from '../../runtime/environment.ts';
import { loadOperatorConfig } from './config.ts';
import { findDemoFile, readDemoFile } from './demo-file.ts';
import { secretsOfStart } from './start-secrets.ts';

/**
 * The servers and secrets of the environment. Without DATABASE_URL, those of the running `npm start`; what the
 * environment does not name is also taken from an `npm start` on the same database, but not its Temporal server.
 */
export function commandPlace(environment?: Environment, database?: string) {
  const config = loadOperatorConfig(environment);
  const found = findDemoFile(config.dataDir);
  const databaseUrl =
    database ?? config.databaseUrl ?? (found ?? readDemoFile(config.dataDir)).databaseUrl;
  // The rows of another database were written with other secrets, and its charges made at other gateways.
  const start = found?.databaseUrl === databaseUrl ? found : undefined;
  const secrets = start === undefined ? {} : secretsOfStart(config.dataDir);
  const temporal = config.databaseUrl === undefined && start !== undefined ? start : config;
  const isGatewayGiven = config.gatewayUrl !== undefined && config.gatewayKey !== undefined;
  const gateway = isGatewayGiven || start === undefined ? config : start;
  const { ENCRYPTION_KEY: key, CREDENTIAL_PEPPER: pepper } = secrets;
  return {
    ...config,
    databaseUrl,
    temporalAddress: temporal.temporalAddress,
    temporalNamespace: temporal.temporalNamespace,
    gatewayUrl: gateway.gatewayUrl,
    gatewayKey: gateway.gatewayKey,
    /** Absent without a Stripe double. */
    stripeDouble: start?.stripeDouble,
    peppers: config.peppers ?? (pepper === undefined ? undefined : listOf(pepper)),
    encryptionKeys: config.encryptionKeys ?? (key === undefined ? undefined : keyRingOf(key)),
  };
}
