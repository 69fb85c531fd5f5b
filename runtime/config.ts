import { readFileSync } from 'node:fs';
import type { WorkerDeploymentVersion } from '@temporalio/common';
import { z } from 'zod';
import { CURRENCIES, withOverrides } from '../domain/currencies.ts';
import type { CurrencyTable } from '../domain/currencies.ts';
import { flag, listOf, port, present, processEnvironment, read, text, url } from './environment.ts';
import type { Check, Environment } from './environment.ts';
import { FAILPOINTS } from './failpoints.ts';
import { KEY_BYTES, keyRingOf } from './sealing.ts';

export const QUEUES = ['billing', 'charges', 'webhooks'] as const;
export type QueueName = (typeof QUEUES)[number];

const secret = z.string().min(32);
const keyRing = z
  .string()
  .transform(keyRingOf)
  .refine(
    (keys) => keys.every((key) => key.length === KEY_BYTES),
    `must be ${KEY_BYTES} bytes in Base64, or several such keys, separated by commas`,
  );
/** Reads a failpoint: `after_gateway`, or `after_gateway:3` to kill the process at the third pass. */
const failpoint = z
  .preprocess(
    (value) => (typeof value === 'string' ? value.split(':') : value),
    z.tuple([z.enum(FAILPOINTS), z.coerce.number().int().min(1).default(1)]),
  )
  .transform(([name, time]) => ({ name, time }));

/** Every variable of an installation. `envconfig` reads those of the connection to Temporal. */
export const variables = {
  NODE_ENV: z.string().optional(),
  FAILPOINT: failpoint.optional(),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),

  HOST: text.default('127.0.0.1'),
  METRICS_PORT: port.optional(),
  OTEL_EXPORTER_OTLP_ENDPOINT: url.optional(),
  API_PORT: port.default(8080),
  GATEWAY_PORT: port.default(8081),

  DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/ }),
  TEMPORAL_ADDRESS: z
    .string()
    .regex(/^[^\s/:]+:\d+$/, 'must look like host:port')
    .default('127.0.0.1:7233'),
  TEMPORAL_NAMESPACE: text.default('default'),
  TEMPORAL_UI_URL: url.optional(),
  DEMO_CHECKOUT_URL: url.optional(),
  TASK_QUEUE_PREFIX: z.string().default(''),
  WORKER_DEPLOYMENT_NAME: text.optional(),
  BUILD_ID: text.optional(),
  WORKER_QUEUES: z
    .string()
    .default(QUEUES.join(','))
    .transform(listOf)
    .pipe(z.array(z.enum(QUEUES)).min(1)),
  WORKFLOW_BUNDLE: text.optional(),
  MAINTENANCE: flag.default(true),
  CURRENCY_LIMITS_FILE: text.optional(),
  // More than a worker can charge, so that a wave has its speed; not so many that a payer waits while Temporal begins them.
  RENEWALS_PER_SECOND: z.coerce.number().min(1).max(100_000).default(100),
  RETENTION_DAYS: z.coerce.number().int().min(1).max(36_500).default(30),

  PUBLIC_URL: url.optional(),
  GATEWAY_URL: url.optional(),
  GATEWAY_PUBLIC_URL: url.optional(),
  STRIPE_API_URL: url.optional(),
  TRUSTED_PROXIES: z.coerce.number().int().min(0).max(10).default(0),
  CHECKOUT_EXPIRY_HOURS: z.coerce.number().min(0.01).max(8_760).default(24),
  RATE_LIMIT_PER_SECOND: z.coerce.number().int().min(1).max(1_000_000).default(100),
  WEBHOOK_ALLOW_LOOPBACK: flag.default(false),
  SMTP_URL: z.url({ protocol: /^smtps?$/ }).optional(),
  MAIL_FROM: z.email().optional(),

  GATEWAY_KEY: secret,
  CREDENTIAL_PEPPER: z.string().transform(listOf).pipe(z.array(secret)),
  SESSION_KEY: secret,
  ENCRYPTION_KEY: keyRing,

  PERENNIAL_EXIT_WITH_PARENT: flag.default(false),
} satisfies Record<string, z.ZodType>;

type Read<Name extends keyof typeof variables> = {
  [Key in Name]: z.output<(typeof variables)[Key]>;
};

/** True if this process must end when its parent ends. Then stdin is a pipe from the parent. */
export function exitsWithParent(environment: Environment = processEnvironment()): boolean {
  return read(variables, ['PERENNIAL_EXIT_WITH_PARENT'], environment).PERENNIAL_EXIT_WITH_PARENT;
}

export const SHARED = ['DATABASE_URL', 'LOG_LEVEL', 'NODE_ENV'] as const;
const GATEWAY = ['GATEWAY_URL', 'GATEWAY_KEY'] as const;
export const SERVER = ['HOST', 'API_PORT', 'GATEWAY_PORT', ...GATEWAY] as const;
/** The addresses of processors' doubles, which {@link doubleUrlsOf} assigns to the processors. */
export const DOUBLES = ['STRIPE_API_URL'] as const;
export const TEMPORAL = ['TEMPORAL_ADDRESS', 'TEMPORAL_NAMESPACE', 'TASK_QUEUE_PREFIX'] as const;
const HOSTED_PAGES = [
  'PUBLIC_URL',
  'SESSION_KEY',
  'CHECKOUT_EXPIRY_HOURS',
  'TRUSTED_PROXIES',
] as const;
const WEBHOOKS = ['ENCRYPTION_KEY', 'WEBHOOK_ALLOW_LOOPBACK', 'MAIL_FROM'] as const;

export const SECRETS = [
  'GATEWAY_KEY',
  'CREDENTIAL_PEPPER',
  'SESSION_KEY',
  'ENCRYPTION_KEY',
] as const;

/**
 * URLs have no trailing slash. `gatewayUrl`: the sandbox for this process; `gatewayPublicUrl`: its tokeniser for a
 * browser; `doubleUrls`: the doubles of processors, for tests.
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
    ...DOUBLES,
    'TEMPORAL_UI_URL',
    'DEMO_CHECKOUT_URL',
    'METRICS_PORT',
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'CREDENTIAL_PEPPER',
    'RATE_LIMIT_PER_SECOND',
    'CURRENCY_LIMITS_FILE',
    'FAILPOINT',
  ] as const;
  const env = read(variables, names, environment, SERVICE_CHECKS);
  const gatewayUrl = env.GATEWAY_URL ?? `http://127.0.0.1:${env.GATEWAY_PORT}`;
  return {
    host: env.HOST,
    port: env.API_PORT,
    metricsPort: env.METRICS_PORT,
    tracesEndpoint: env.OTEL_EXPORTER_OTLP_ENDPOINT,
    publicUrl: publicUrlOf(env),
    homeLinks: homeLinksOf(env),
    databaseUrl: env.DATABASE_URL,
    ...temporalSettings(env),
    gatewayUrl,
    gatewayPublicUrl: env.GATEWAY_PUBLIC_URL ?? gatewayUrl,
    gatewayKey: env.GATEWAY_KEY,
    doubleUrls: doubleUrlsOf(env),
    credentialPeppers: env.CREDENTIAL_PEPPER,
    encryptionKeys: env.ENCRYPTION_KEY,
    sessionKey: env.SESSION_KEY,
    checkoutExpiryMs: Math.round(env.CHECKOUT_EXPIRY_HOURS * 3_600_000),
    trustedProxies: env.TRUSTED_PROXIES,
    requestsPerSecond: env.RATE_LIMIT_PER_SECOND,
    currencies: readCurrencyLimits(env.CURRENCY_LIMITS_FILE),
    webhookAllowLoopback: env.WEBHOOK_ALLOW_LOOPBACK,
    sendsMails: env.MAIL_FROM !== undefined,
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
    ...DOUBLES,
    'METRICS_PORT',
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'WORKER_QUEUES',
    'WORKER_DEPLOYMENT_NAME',
    'BUILD_ID',
    'WORKFLOW_BUNDLE',
    'MAINTENANCE',
    'RENEWALS_PER_SECOND',
    'RETENTION_DAYS',
    'SMTP_URL',
    'CURRENCY_LIMITS_FILE',
    'FAILPOINT',
  ] as const;
  const checks = [...SERVICE_CHECKS, refuseHalfADeployment, refuseHalfAMailServer];
  const env = read(variables, names, environment, checks);
  return {
    host: env.HOST,
    metricsPort: env.METRICS_PORT,
    tracesEndpoint: env.OTEL_EXPORTER_OTLP_ENDPOINT,
    databaseUrl: env.DATABASE_URL,
    ...temporalSettings(env),
    queues: env.WORKER_QUEUES,
    deployment: deploymentOf(env),
    workflowBundle: env.WORKFLOW_BUNDLE,
    links: { publicUrl: publicUrlOf(env), sessionKey: env.SESSION_KEY },
    isMaintenanceOn: env.MAINTENANCE,
    renewalsPerSecond: env.RENEWALS_PER_SECOND,
    retentionMs: env.RETENTION_DAYS * 24 * 3_600_000,
    gatewayUrl: env.GATEWAY_URL ?? `http://127.0.0.1:${env.GATEWAY_PORT}`,
    gatewayKey: env.GATEWAY_KEY,
    doubleUrls: doubleUrlsOf(env),
    encryptionKeys: env.ENCRYPTION_KEY,
    webhookAllowLoopback: env.WEBHOOK_ALLOW_LOOPBACK,
    mail: mailOf(env),
    failpoint: env.FAILPOINT,
    logLevel: env.LOG_LEVEL,
  };
}

/** Null: the installation sends no e-mails. */
function mailOf({ SMTP_URL: smtpUrl, MAIL_FROM: from }: Read<'SMTP_URL' | 'MAIL_FROM'>) {
  return smtpUrl === undefined || from === undefined ? null : { smtpUrl, from };
}

function deploymentOf({
  WORKER_DEPLOYMENT_NAME: deploymentName = '',
  BUILD_ID: buildId = '',
}: Read<'WORKER_DEPLOYMENT_NAME' | 'BUILD_ID'>): WorkerDeploymentVersion | null {
  return deploymentName === '' ? null : { deploymentName, buildId };
}

/**
 * Returns the settings of the sandbox gateway's process. `publicUrl` is the tokeniser's origin in a browser.
 * The tokeniser redirects the browser only to `apiPublicUrl`.
 *
 * @throws ConfigError with every problem at once.
 */
export function loadGatewayConfig(environment: Environment = processEnvironment()) {
  const names = [...SHARED, ...SERVER, 'PUBLIC_URL', 'GATEWAY_PUBLIC_URL'] as const;
  const env = read(variables, names, environment);
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

/** Settings of the migration. @throws ConfigError with every problem at once. */
export function loadMigrateConfig(environment: Environment = processEnvironment()) {
  const env = read(variables, SHARED, environment);
  return { databaseUrl: env.DATABASE_URL, logLevel: env.LOG_LEVEL };
}

export function temporalSettings(env: Read<(typeof TEMPORAL)[number]>) {
  return {
    temporalAddress: env.TEMPORAL_ADDRESS,
    temporalNamespace: env.TEMPORAL_NAMESPACE,
    taskQueuePrefix: env.TASK_QUEUE_PREFIX,
  };
}

export const doubleUrlsOf = (env: Read<'STRIPE_API_URL'>) => ({ stripe: env.STRIPE_API_URL });

function homeLinksOf(env: Read<'TEMPORAL_UI_URL' | 'DEMO_CHECKOUT_URL'>) {
  return [
    { url: env.TEMPORAL_UI_URL, text: 'Temporal Web UI' },
    { url: env.DEMO_CHECKOUT_URL, text: 'A checkout to try, in test mode' },
  ].flatMap(({ url: link, text }) => (link === undefined ? [] : [{ url: link, text }]));
}

function publicUrlOf(env: Read<'PUBLIC_URL' | 'HOST' | 'API_PORT'>): string {
  return env.PUBLIC_URL ?? `http://${urlHost(env.HOST)}:${env.API_PORT}`;
}

/** Returns the host part of a URL, with loopback in place of a wildcard address. */
export function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}

const isPresent = (value: string | undefined) => present(value) !== undefined;
const isOn = (value: string | undefined) => flag.safeParse(value).data === true;

const unlessProduction =
  (name: string, rule = 'must not be set', isSet = isPresent): Check =>
  (environment) =>
    isSet(environment[name]) && environment['NODE_ENV'] === 'production'
      ? `${name}: ${rule} when NODE_ENV is production`
      : undefined;

/** An address other than the processor's would receive the merchants' keys. */
export const refuseDoublesInProduction = DOUBLES.map((name) => unlessProduction(name));

/** The worker refuses a wrong file, too, although it does not check amounts against the limits. */
const refuseWrongCurrencyLimits: Check = (environment) => {
  try {
    readCurrencyLimits(present(environment['CURRENCY_LIMITS_FILE']));
  } catch (error) {
    return `CURRENCY_LIMITS_FILE: ${messageOf(error)}`;
  }
};

const together =
  (one: string, other: string): Check =>
  (environment) =>
    isPresent(environment[one]) === isPresent(environment[other])
      ? undefined
      : `${one}, ${other}: must be set together`;

const refuseHalfADeployment = together('WORKER_DEPLOYMENT_NAME', 'BUILD_ID');
/** The API needs the address alone, to know that e-mails are sent. */
const refuseHalfAMailServer = together('SMTP_URL', 'MAIL_FROM');

export const SERVICE_CHECKS: readonly Check[] = [
  unlessProduction('WEBHOOK_ALLOW_LOOPBACK', 'must be off', isOn),
  unlessProduction('FAILPOINT'),
  ...refuseDoublesInProduction,
  refuseWrongCurrencyLimits,
];

/** Returns the table with the file's limits. @throws Error naming file, currency and field. */
export function readCurrencyLimits(path: string | undefined): CurrencyTable {
  if (path === undefined) return CURRENCIES;
  try {
    return withOverrides(CURRENCIES, JSON.parse(readFileSync(path, 'utf8')) as unknown);
  } catch (error) {
    const reason = error instanceof SyntaxError ? 'is not valid JSON' : messageOf(error);
    throw new Error(`${path}: ${reason}`, { cause: error });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
