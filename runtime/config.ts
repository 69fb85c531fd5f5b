import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { z } from 'zod';
import { readCurrencyLimits } from './currency-limits.ts';
import { FAILPOINTS } from './failpoints.ts';

/** The variables of a process. An empty variable counts as absent. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Thrown for wrong or missing settings at the start of a process. The message names every wrong variable with
 * its expected form, one per line. The message contains no secret.
 */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(['Cannot start: the settings are incomplete or wrong.', ...problems].join('\n  - '));
    this.problems = problems;
    // Node prints the stack of an uncaught error. For wrong settings the message is enough.
    this.stack = `${this.name}: ${this.message}`;
  }
}

export const QUEUES = ['billing', 'charges', 'webhooks'] as const;
export type QueueName = (typeof QUEUES)[number];

const port = z.coerce.number().int().min(1).max(65_535);
const url = z.url({ protocol: /^https?$/ }).transform((value) => value.replace(/\/+$/, ''));
const flag = z
  .enum(['true', 'false', '1', '0', 'on', 'off'])
  .transform((value) => value === 'true' || value === '1' || value === 'on');
const secret = z.string().min(32);
/** Reads a failpoint: `after_gateway`, or `after_gateway:3` to kill the process at the third pass. */
const failpoint = z
  .preprocess(
    (value) => (typeof value === 'string' ? value.split(':') : value),
    z.tuple([z.enum(FAILPOINTS), z.coerce.number().int().min(1).default(1)]),
  )
  .transform(([name, time]) => ({ name, time }));

/**
 * Every variable that this project reads, with its form and default. Temporal's `envconfig` package reads
 * further variables for the connection to Temporal.
 */
const variables = {
  NODE_ENV: z.string().optional(),
  FAILPOINT: failpoint.optional(),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),

  HOST: z.string().min(1).default('127.0.0.1'),
  API_PORT: port.default(8080),
  GATEWAY_PORT: port.default(8081),
  POSTGRES_PORT: port.default(54_329),
  TEMPORAL_PORT: port.default(7233),
  TEMPORAL_UI_PORT: port.default(8233),
  STRIPE_DOUBLE_PORT: port.default(8082),
  FAULT_PROXY_PORT: port.default(8083),
  STRIPE_MOCK_PORT: port.default(12_111),

  DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/ }),
  TEMPORAL_ADDRESS: z
    .string()
    .regex(/^[^\s/:]+:\d+$/, 'must look like host:port')
    .default('127.0.0.1:7233'),
  TEMPORAL_NAMESPACE: z.string().min(1).default('default'),
  TEMPORAL_UI_URL: url.optional(),
  DEMO_CHECKOUT_URL: url.optional(),
  TASK_QUEUE_PREFIX: z.string().default(''),
  WORKER_QUEUES: z
    .string()
    .default(QUEUES.join(','))
    .transform((value) => value.split(',').map((name) => name.trim()))
    .pipe(z.array(z.enum(QUEUES)).min(1)),
  WORKFLOW_BUNDLE: z.string().min(1).optional(),
  MAINTENANCE: flag.default(true),
  CURRENCY_LIMITS_FILE: z.string().min(1).optional(),
  RETENTION_DAYS: z.coerce.number().int().min(1).max(36_500).default(30),

  PUBLIC_URL: url.optional(),
  GATEWAY_URL: url.optional(),
  GATEWAY_PUBLIC_URL: url.optional(),
  STRIPE_API_URL: url.optional(),
  TRUSTED_PROXIES: z.coerce.number().int().min(0).max(10).default(0),
  CHECKOUT_EXPIRY_HOURS: z.coerce.number().positive().max(8_760).default(24),
  RATE_LIMIT_PER_SECOND: z.coerce.number().int().min(1).max(1_000_000).default(100),
  WEBHOOK_ALLOW_LOOPBACK: flag.default(false),

  GATEWAY_KEY: secret,
  CREDENTIAL_PEPPER: secret,
  SESSION_KEY: secret,
  ENCRYPTION_KEY: z
    .base64()
    .transform((value) => Buffer.from(value, 'base64'))
    .refine((key) => key.length === 32, 'must be 32 bytes in Base64'),

  DATA_DIR: z.string().min(1).default('.data'),
  PERENNIAL_CACHE_DIR: z.string().min(1).optional(),
  XDG_CACHE_HOME: z.string().min(1).optional(),
  EMBEDDED_TEMPORAL: z.enum(['dev', 'cluster']).default('dev'),
  TEMPORAL_CLI_PATH: z.string().min(1).optional(),
  TEMPORAL_TEST_SERVER_PATH: z.string().min(1).optional(),
  CHROMIUM_PATH: z.string().min(1).optional(),
  PERENNIAL_EXIT_WITH_PARENT: flag.default(false),
} satisfies Record<string, z.ZodType>;

export type VariableName = keyof typeof variables;

/** The name of every variable in {@link variables}. Tests compare the documents with this list. */
export const VARIABLE_NAMES = Object.keys(variables) as readonly VariableName[];

type Read<Name extends VariableName> = { [Key in Name]: z.output<(typeof variables)[Key]> };

/**
 * Returns the variables of the process. `.env` in the working directory supplies variables that the process
 * does not have. Only this file, `tools/scripts/run.mjs`, the examples and tests read `process.env`.
 */
function processEnvironment(): Environment {
  const dotEnv = existsSync('.env') ? parseEnv(readFileSync('.env', 'utf8')) : {};
  return { ...dotEnv, ...process.env };
}

/** Returns the variables for a child process: those of this process, replaced or extended by `overrides`. */
export function childEnvironment(overrides: Environment): NodeJS.ProcessEnv {
  return { ...process.env, ...overrides };
}

/** True if this process must end when its parent ends. Then stdin is a pipe from the parent. */
export function exitsWithParent(environment: Environment = processEnvironment()): boolean {
  return read(['PERENNIAL_EXIT_WITH_PARENT'], environment).PERENNIAL_EXIT_WITH_PARENT;
}

const SHARED = ['DATABASE_URL', 'LOG_LEVEL', 'NODE_ENV'] as const;
const GATEWAY = ['GATEWAY_URL', 'GATEWAY_KEY'] as const;
const SERVER = ['HOST', 'API_PORT', 'GATEWAY_PORT', ...GATEWAY] as const;
const TEMPORAL = ['TEMPORAL_ADDRESS', 'TEMPORAL_NAMESPACE', 'TASK_QUEUE_PREFIX'] as const;
const HOSTED_PAGES = [
  'PUBLIC_URL',
  'SESSION_KEY',
  'CHECKOUT_EXPIRY_HOURS',
  'TRUSTED_PROXIES',
] as const;
const WEBHOOKS = ['ENCRYPTION_KEY', 'WEBHOOK_ALLOW_LOOPBACK'] as const;

export const SECRETS = [
  'GATEWAY_KEY',
  'CREDENTIAL_PEPPER',
  'SESSION_KEY',
  'ENCRYPTION_KEY',
] as const;

/**
 * URLs have no trailing slash. `gatewayUrl`: the sandbox for this process; `gatewayPublicUrl`: its tokeniser for a
 * browser; `stripeUrl`: a Stripe double, for tests.
 * @throws ConfigError with every problem at once.
 */
export function loadApiConfig(environment: Environment = processEnvironment()) {
  const names = [
    ...SHARED,
    ...SERVER,
    ...TEMPORAL,
    ...HOSTED_PAGES,
    ...WEBHOOKS,
    'GATEWAY_PUBLIC_URL',
    'STRIPE_API_URL',
    'TEMPORAL_UI_URL',
    'DEMO_CHECKOUT_URL',
    'CREDENTIAL_PEPPER',
    'RATE_LIMIT_PER_SECOND',
    'CURRENCY_LIMITS_FILE',
    'FAILPOINT',
  ] as const;
  const env = read(names, environment, SERVICE_CHECKS);
  const gatewayUrl = env.GATEWAY_URL ?? `http://127.0.0.1:${env.GATEWAY_PORT}`;
  return {
    host: env.HOST,
    port: env.API_PORT,
    publicUrl: publicUrlOf(env),
    homeLinks: homeLinksOf(env),
    databaseUrl: env.DATABASE_URL,
    ...temporalSettings(env),
    gatewayUrl,
    gatewayPublicUrl: env.GATEWAY_PUBLIC_URL ?? gatewayUrl,
    gatewayKey: env.GATEWAY_KEY,
    stripeUrl: env.STRIPE_API_URL,
    credentialPepper: env.CREDENTIAL_PEPPER,
    encryptionKey: env.ENCRYPTION_KEY,
    sessionKey: env.SESSION_KEY,
    checkoutExpiryMs: env.CHECKOUT_EXPIRY_HOURS * 3_600_000,
    trustedProxies: env.TRUSTED_PROXIES,
    requestsPerSecond: env.RATE_LIMIT_PER_SECOND,
    currencies: readCurrencyLimits(env.CURRENCY_LIMITS_FILE),
    webhookAllowLoopback: env.WEBHOOK_ALLOW_LOOPBACK,
    failpoint: env.FAILPOINT,
    logLevel: env.LOG_LEVEL,
  };
}

/**
 * `links`: key and base URL must equal those of the API. Without `workflowBundle` the worker bundles the workflows.
 * `isMaintenanceOn`: false disables the sweeps.
 * @throws ConfigError with every problem at once.
 */
export function loadWorkerConfig(environment: Environment = processEnvironment()) {
  const names = [
    ...SHARED,
    ...SERVER,
    ...TEMPORAL,
    ...WEBHOOKS,
    'PUBLIC_URL',
    'SESSION_KEY',
    'STRIPE_API_URL',
    'WORKER_QUEUES',
    'WORKFLOW_BUNDLE',
    'MAINTENANCE',
    'RETENTION_DAYS',
    'CURRENCY_LIMITS_FILE',
    'FAILPOINT',
  ] as const;
  const env = read(names, environment, SERVICE_CHECKS);
  return {
    databaseUrl: env.DATABASE_URL,
    ...temporalSettings(env),
    queues: env.WORKER_QUEUES,
    workflowBundle: env.WORKFLOW_BUNDLE,
    links: { publicUrl: publicUrlOf(env), sessionKey: env.SESSION_KEY },
    isMaintenanceOn: env.MAINTENANCE,
    retentionMs: env.RETENTION_DAYS * 24 * 3_600_000,
    gatewayUrl: env.GATEWAY_URL ?? `http://127.0.0.1:${env.GATEWAY_PORT}`,
    gatewayKey: env.GATEWAY_KEY,
    stripeUrl: env.STRIPE_API_URL,
    encryptionKey: env.ENCRYPTION_KEY,
    webhookAllowLoopback: env.WEBHOOK_ALLOW_LOOPBACK,
    failpoint: env.FAILPOINT,
    logLevel: env.LOG_LEVEL,
  };
}

/**
 * Returns the settings of the sandbox gateway's process. `publicUrl` is the tokeniser's origin in a browser.
 * The tokeniser redirects the browser only to `apiPublicUrl`.
 *
 * @throws ConfigError with every problem at once.
 */
export function loadGatewayConfig(environment: Environment = processEnvironment()) {
  const names = [...SHARED, ...SERVER, 'PUBLIC_URL', 'GATEWAY_PUBLIC_URL'] as const;
  const env = read(names, environment);
  return {
    host: env.HOST,
    port: env.GATEWAY_PORT,
    publicUrl: env.GATEWAY_PUBLIC_URL ?? env.GATEWAY_URL ?? `http://127.0.0.1:${env.GATEWAY_PORT}`,
    apiPublicUrl: env.PUBLIC_URL ?? `http://${urlHost(env.HOST)}:${env.API_PORT}`,
    databaseUrl: env.DATABASE_URL,
    gatewayKey: env.GATEWAY_KEY,
    logLevel: env.LOG_LEVEL,
  };
}

/**
 * Settings of the Stripe double and of the fault proxy in front of it. `controlKey`: of the control routes of both.
 * @throws ConfigError with every problem at once.
 */
export function loadStripeDoubleConfig(environment: Environment = processEnvironment()) {
  const names = [...SHARED, ...SERVER, 'STRIPE_DOUBLE_PORT', 'FAULT_PROXY_PORT'] as const;
  const env = read(names, environment);
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

export type EmbeddedConfig = ReturnType<typeof loadEmbeddedConfig>;

/**
 * Settings of `npm start` and of the tests' servers. With `databaseUrl` or `temporalAddress` that embedded server is
 * not started.
 * @throws ConfigError with every problem at once.
 */
export function loadEmbeddedConfig(environment: Environment = processEnvironment()) {
  const names = [
    'HOST',
    'API_PORT',
    'GATEWAY_PORT',
    'POSTGRES_PORT',
    'TEMPORAL_PORT',
    'TEMPORAL_UI_PORT',
    'STRIPE_DOUBLE_PORT',
    'FAULT_PROXY_PORT',
    'STRIPE_MOCK_PORT',
    'TEMPORAL_NAMESPACE',
    'TEMPORAL_UI_URL',
    'PUBLIC_URL',
    'GATEWAY_URL',
    'GATEWAY_PUBLIC_URL',
    'STRIPE_API_URL',
    'DATA_DIR',
    'PERENNIAL_CACHE_DIR',
    'XDG_CACHE_HOME',
    'EMBEDDED_TEMPORAL',
    'TEMPORAL_CLI_PATH',
    'TEMPORAL_TEST_SERVER_PATH',
    'CHROMIUM_PATH',
    'LOG_LEVEL',
  ] as const;
  const env = read(names, environment, [refuseStripeDoubleInProduction]);
  const replaced = readOptional(['DATABASE_URL', 'TEMPORAL_ADDRESS'], environment);
  readOptional(SECRETS, environment);
  return {
    host: env.HOST,
    apiPort: env.API_PORT,
    gatewayPort: env.GATEWAY_PORT,
    postgresPort: env.POSTGRES_PORT,
    temporalPort: env.TEMPORAL_PORT,
    temporalUiPort: env.TEMPORAL_UI_PORT,
    stripeDoublePort: env.STRIPE_DOUBLE_PORT,
    faultProxyPort: env.FAULT_PROXY_PORT,
    stripeMockPort: env.STRIPE_MOCK_PORT,
    temporalNamespace: env.TEMPORAL_NAMESPACE,
    temporalUiUrl: env.TEMPORAL_UI_URL,
    publicUrl: env.PUBLIC_URL,
    gatewayUrl: env.GATEWAY_URL,
    gatewayPublicUrl: env.GATEWAY_PUBLIC_URL,
    stripeUrl: env.STRIPE_API_URL,
    databaseUrl: replaced.DATABASE_URL,
    temporalAddress: replaced.TEMPORAL_ADDRESS,
    dataDir: resolve(env.DATA_DIR),
    cacheDir: resolve(
      env.PERENNIAL_CACHE_DIR ?? join(env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'perennial'),
    ),
    embeddedTemporal: env.EMBEDDED_TEMPORAL,
    temporalCliPath: env.TEMPORAL_CLI_PATH,
    testServerPath: env.TEMPORAL_TEST_SERVER_PATH,
    chromiumPath: env.CHROMIUM_PATH,
    logLevel: env.LOG_LEVEL,
    /** Secrets from the environment. The caller generates the missing ones. */
    givenSecrets: Object.fromEntries(
      SECRETS.flatMap((name) => {
        const value = present(environment[name]);
        return value === undefined ? [] : [[name, value]];
      }),
    ) as Partial<Record<(typeof SECRETS)[number], string>>,
  };
}

/**
 * Returns the settings of the operator's commands. If `databaseUrl` is undefined, the commands use the
 * servers that `npm start` runs with the data in `dataDir`.
 *
 * @throws ConfigError with every problem at once.
 */
export function loadOperatorConfig(environment: Environment = processEnvironment()) {
  const names = [
    ...TEMPORAL,
    'DATA_DIR',
    'GATEWAY_URL',
    'GATEWAY_PORT',
    'STRIPE_API_URL',
    'CURRENCY_LIMITS_FILE',
  ] as const;
  const env = read(names, environment, SERVICE_CHECKS);
  const given = readOptional(['DATABASE_URL', 'GATEWAY_KEY', 'ENCRYPTION_KEY'], environment);
  return {
    databaseUrl: given.DATABASE_URL,
    dataDir: resolve(env.DATA_DIR),
    ...temporalSettings(env),
    gatewayUrl: env.GATEWAY_URL ?? `http://127.0.0.1:${env.GATEWAY_PORT}`,
    gatewayKey: given.GATEWAY_KEY,
    encryptionKey: given.ENCRYPTION_KEY,
    stripeUrl: env.STRIPE_API_URL,
    currencies: readCurrencyLimits(env.CURRENCY_LIMITS_FILE),
  };
}

function temporalSettings(env: Read<(typeof TEMPORAL)[number]>) {
  return {
    temporalAddress: env.TEMPORAL_ADDRESS,
    temporalNamespace: env.TEMPORAL_NAMESPACE,
    taskQueuePrefix: env.TASK_QUEUE_PREFIX,
  };
}

function homeLinksOf(env: Read<'TEMPORAL_UI_URL' | 'DEMO_CHECKOUT_URL'>) {
  return [
    { url: env.TEMPORAL_UI_URL, text: 'Temporal Web UI' },
    { url: env.DEMO_CHECKOUT_URL, text: 'A checkout to try, in test mode' },
  ].flatMap(({ url: link, text }) => (link === undefined ? [] : [{ url: link, text }]));
}

function publicUrlOf(env: Read<'PUBLIC_URL' | 'HOST' | 'API_PORT'>): string {
  return env.PUBLIC_URL ?? `http://${urlHost(env.HOST)}:${env.API_PORT}`;
}

/**
 * Returns the host part of a URL. Replaces a wildcard address by loopback, because clients cannot connect to a
 * wildcard address.
 */
function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}

type Check = (environment: Environment) => string | undefined;

const refuseLoopbackInProduction: Check = (environment) => {
  const isAllowed = flag.safeParse(environment['WEBHOOK_ALLOW_LOOPBACK']).data === true;
  return isAllowed && environment['NODE_ENV'] === 'production'
    ? 'WEBHOOK_ALLOW_LOOPBACK: must be off when NODE_ENV is production'
    : undefined;
};

const refuseFailpointInProduction: Check = (environment) =>
  present(environment['FAILPOINT']) !== undefined && environment['NODE_ENV'] === 'production'
    ? 'FAILPOINT: must not be set when NODE_ENV is production'
    : undefined;

/** An address other than Stripe's would receive the merchants' keys. */
const refuseStripeDoubleInProduction: Check = (environment) =>
  present(environment['STRIPE_API_URL']) !== undefined && environment['NODE_ENV'] === 'production'
    ? 'STRIPE_API_URL: must not be set when NODE_ENV is production'
    : undefined;

/** The worker refuses a wrong file, too, although it does not check amounts against the limits. */
const refuseWrongCurrencyLimits: Check = (environment) => {
  try {
    readCurrencyLimits(present(environment['CURRENCY_LIMITS_FILE']));
  } catch (error) {
    return `CURRENCY_LIMITS_FILE: ${error instanceof Error ? error.message : String(error)}`;
  }
};

const SERVICE_CHECKS: readonly Check[] = [
  refuseLoopbackInProduction,
  refuseFailpointInProduction,
  refuseStripeDoubleInProduction,
  refuseWrongCurrencyLimits,
];

function read<Name extends VariableName>(
  names: readonly Name[],
  environment: Environment,
  checks: readonly Check[] = [],
): Read<Name> {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const name of new Set(names)) {
    const raw = present(environment[name]);
    const result = variables[name].safeParse(raw);
    if (result.success) values[name] = result.data;
    else if (raw === undefined) problems.push(`${name}: is not set and has no default`);
    else problems.push(`${name}: ${result.error.issues.map((issue) => issue.message).join('; ')}`);
  }
  for (const check of checks) {
    const problem = check(environment);
    if (problem !== undefined) problems.push(problem);
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return values as Read<Name>;
}

/** Like {@link read}, but ignores defaults: an absent variable is undefined. */
function readOptional<Name extends VariableName>(
  names: readonly Name[],
  environment: Environment,
): Partial<Read<Name>> {
  return read(
    names.filter((name) => present(environment[name]) !== undefined),
    environment,
  );
}

function present(value: string | undefined): string | undefined {
  return value === undefined || value.trim() === '' ? undefined : value;
}
