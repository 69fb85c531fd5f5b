import { resolve } from 'node:path';
import type { z } from 'zod';
import {
  DOUBLES,
  doubleUrlsOf,
  readCurrencyLimits,
  SERVICE_CHECKS,
  TEMPORAL,
  temporalSettings,
  variables as product,
} from '../../runtime/config.ts';
import { present, processEnvironment, read, text } from '../../runtime/environment.ts';
import type { Environment } from '../../runtime/environment.ts';

/** The variables of a running installation, and the data folder of `npm start`. */
export const variables = {
  ...product,
  DATA_DIR: text.default('.data'),
} satisfies Record<string, z.ZodType>;

/** As {@link read}, but ignores defaults: an absent variable is undefined. */
export function readOptional<
  Variables extends Record<string, z.ZodType>,
  Name extends keyof Variables & string,
>(
  known: Variables,
  names: readonly Name[],
  environment: Environment,
): Partial<ReturnType<typeof read<Variables, Name>>> {
  const given = names.filter((name) => present(environment[name]) !== undefined);
  return read(known, given, environment);
}

/** The settings of an operator's command. Throws ConfigError. */
export function loadOperatorConfig(environment: Environment = processEnvironment()) {
  const names = [
    ...TEMPORAL,
    'DATA_DIR',
    'GATEWAY_URL',
    'GATEWAY_PORT',
    ...DOUBLES,
    'CURRENCY_LIMITS_FILE',
    'RENEWALS_PER_SECOND',
  ] as const;
  const env = read(variables, names, environment, SERVICE_CHECKS);
  const given = readOptional(
    variables,
    ['DATABASE_URL', 'GATEWAY_KEY', 'CREDENTIAL_PEPPER', 'ENCRYPTION_KEY'],
    environment,
  );
  return {
    databaseUrl: given.DATABASE_URL,
    dataDir: resolve(env.DATA_DIR),
    ...temporalSettings(env),
    gatewayUrl: env.GATEWAY_URL,
    gatewayPort: env.GATEWAY_PORT,
    gatewayKey: given.GATEWAY_KEY,
    peppers: given.CREDENTIAL_PEPPER,
    encryptionKeys: given.ENCRYPTION_KEY,
    doubleUrls: doubleUrlsOf(env),
    renewalsPerSecond: env.RENEWALS_PER_SECOND,
    currencies: readCurrencyLimits(env.CURRENCY_LIMITS_FILE),
  };
}
