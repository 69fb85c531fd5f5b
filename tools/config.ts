import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { refuseDoublesInProduction, SECRETS, SERVER, SHARED, urlHost } from '../runtime/config.ts';
import { readOptional, variables as operator } from '../cli/command-line/config.ts';
import { port, present, processEnvironment, read, text } from '../runtime/environment.ts';
import type { Environment } from '../runtime/environment.ts';

/** The variables of the product and its commands, and those of `npm start`, the doubles and the tests' servers. */
const variables = {
  ...operator,
  POSTGRES_PORT: port.default(54_329),
  TEMPORAL_PORT: port.default(7233),
  TEMPORAL_UI_PORT: port.default(8233),
  STRIPE_DOUBLE_PORT: port.default(8082),
  FAULT_PROXY_PORT: port.default(8083),
  STRIPE_MOCK_PORT: port.default(12_111),
  PERENNIAL_CACHE_DIR: text.optional(),
  XDG_CACHE_HOME: text.optional(),
  EMBEDDED_TEMPORAL: z.enum(['dev', 'cluster']).default('dev'),
  TEMPORAL_CLI_PATH: text.optional(),
  TEMPORAL_TEST_SERVER_PATH: text.optional(),
  CHROMIUM_PATH: text.optional(),
} satisfies Record<string, z.ZodType>;

/** The name of every variable that this project reads. Tests compare the documents with this list. */
export const VARIABLE_NAMES = Object.keys(variables) as readonly (keyof typeof variables)[];

/** `controlKey`: of the control routes of the double and of the proxy. Throws ConfigError with every problem. */
export function loadStripeDoubleConfig(environment: Environment = processEnvironment()) {
  const names = [...SHARED, ...SERVER, 'STRIPE_DOUBLE_PORT', 'FAULT_PROXY_PORT'] as const;
  const env = read(variables, names, environment);
  return {
    host: env.HOST,
    port: env.STRIPE_DOUBLE_PORT,
    doubleUrl: `http://${urlHost(env.HOST)}:${env.STRIPE_DOUBLE_PORT}`,
    proxyPort: env.FAULT_PROXY_PORT,
    databaseUrl: env.DATABASE_URL,
    controlKey: env.GATEWAY_KEY,
    logLevel: env.LOG_LEVEL,
  };
}

/** The fields of {@link EmbeddedConfig} that are the values of variables. */
const EMBEDDED = {
  host: 'HOST',
  apiPort: 'API_PORT',
  gatewayPort: 'GATEWAY_PORT',
  metricsPort: 'METRICS_PORT',
  postgresPort: 'POSTGRES_PORT',
  temporalPort: 'TEMPORAL_PORT',
  temporalUiPort: 'TEMPORAL_UI_PORT',
  stripeDoublePort: 'STRIPE_DOUBLE_PORT',
  faultProxyPort: 'FAULT_PROXY_PORT',
  stripeMockPort: 'STRIPE_MOCK_PORT',
  temporalNamespace: 'TEMPORAL_NAMESPACE',
  temporalUiUrl: 'TEMPORAL_UI_URL',
  publicUrl: 'PUBLIC_URL',
  gatewayUrl: 'GATEWAY_URL',
  gatewayPublicUrl: 'GATEWAY_PUBLIC_URL',
  stripeUrl: 'STRIPE_API_URL',
  embeddedTemporal: 'EMBEDDED_TEMPORAL',
  temporalCliPath: 'TEMPORAL_CLI_PATH',
  testServerPath: 'TEMPORAL_TEST_SERVER_PATH',
  chromiumPath: 'CHROMIUM_PATH',
  logLevel: 'LOG_LEVEL',
} as const;

export type EmbeddedConfig = ReturnType<typeof loadEmbeddedConfig>;

/** Settings of `npm start` and the tests' servers. A given server is not started. Throws ConfigError. */
export function loadEmbeddedConfig(environment: Environment = processEnvironment()) {
  const names = [
    ...Object.values(EMBEDDED),
    'DATA_DIR',
    'PERENNIAL_CACHE_DIR',
    'XDG_CACHE_HOME',
  ] as const;
  const env = read(variables, names, environment, refuseDoublesInProduction);
  const fields = Object.entries(EMBEDDED).map(([field, name]) => [field, env[name]]);
  const replaced = readOptional(variables, ['DATABASE_URL', 'TEMPORAL_ADDRESS'], environment);
  readOptional(variables, SECRETS, environment);
  return {
    ...(Object.fromEntries(fields) as {
      [Field in keyof typeof EMBEDDED]: (typeof env)[(typeof EMBEDDED)[Field]];
    }),
    databaseUrl: replaced.DATABASE_URL,
    temporalAddress: replaced.TEMPORAL_ADDRESS,
    dataDir: resolve(env.DATA_DIR),
    cacheDir: resolve(
      env.PERENNIAL_CACHE_DIR ?? join(env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'perennial'),
    ),
    givenSecrets: Object.fromEntries(
      SECRETS.flatMap((name) => {
        const value = present(environment[name]);
        return value === undefined ? [] : [[name, value]];
      }),
    ) as Partial<Record<(typeof SECRETS)[number], string>>,
  };
}
