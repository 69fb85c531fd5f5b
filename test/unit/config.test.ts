import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { CURRENCIES } from '../../domain/currencies.ts';
import { loadApiConfig, loadGatewayConfig, loadWorkerConfig } from '../../runtime/config.ts';
import { ConfigError } from '../../runtime/environment.ts';
import { loadEmbeddedConfig } from '../../tools/config.ts';

const key = Buffer.alloc(32, 9).toString('base64');
const enough = {
  DATABASE_URL: 'postgres://user:pass@127.0.0.1:5432/perennial',
  GATEWAY_KEY: key,
  CREDENTIAL_PEPPER: key,
  SESSION_KEY: key,
  ENCRYPTION_KEY: key,
};

function problemsOf(load: () => unknown): readonly string[] {
  try {
    load();
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe('settings', () => {
  it('have defaults, except for the database and the secrets', () => {
    expect(loadApiConfig(enough)).toEqual({
      host: '127.0.0.1',
      port: 8080,
      publicUrl: 'http://127.0.0.1:8080',
      homeLinks: [],
      databaseUrl: enough.DATABASE_URL,
      temporalAddress: '127.0.0.1:7233',
      temporalNamespace: 'default',
      taskQueuePrefix: '',
      gatewayUrl: 'http://127.0.0.1:8081',
      gatewayPublicUrl: 'http://127.0.0.1:8081',
      gatewayKey: key,
      doubleUrls: {},
      credentialPeppers: [key],
      encryptionKeys: [Buffer.alloc(32, 9)],
      sessionKey: key,
      checkoutExpiryMs: 86_400_000,
      trustedProxies: 0,
      requestsPerSecond: 100,
      currencies: CURRENCIES,
      webhookAllowLoopback: false,
      sendsMails: false,
      logLevel: 'info',
    });
  });

  it('have a mail server and the address of its sender, or neither', () => {
    const from = 'billing@pay.example';
    const smtpUrl = 'smtps://user:hunter2@mail.example:465';
    expect(loadWorkerConfig(enough).mail).toBeNull();
    expect(loadWorkerConfig({ ...enough, SMTP_URL: smtpUrl, MAIL_FROM: from }).mail).toEqual({
      smtpUrl,
      from,
    });
    expect(loadApiConfig({ ...enough, MAIL_FROM: from }).sendsMails).toBe(true);
    expect(problemsOf(() => loadWorkerConfig({ ...enough, SMTP_URL: smtpUrl }))).toEqual([
      'SMTP_URL, MAIL_FROM: must be set together',
    ]);
  });

  it('give the expiry of a checkout in whole ms', () => {
    const { checkoutExpiryMs } = loadApiConfig({ ...enough, CHECKOUT_EXPIRY_HOURS: '0.333333' });
    expect(checkoutExpiryMs).toBe(1_199_999);
  });

  it('are refused with all problems in one message, which contains no value', () => {
    const wrong = {
      ...enough,
      DATABASE_URL: 'mysql://user:hunter2@db/x',
      API_PORT: '70000',
      ENCRYPTION_KEY: Buffer.alloc(16).toString('base64'),
      SESSION_KEY: 'hunter2',
      TEMPORAL_ADDRESS: 'nowhere',
      WEBHOOK_ALLOW_LOOPBACK: 'perhaps',
      CREDENTIAL_PEPPER: '  ',
    };
    const problems = problemsOf(() => loadApiConfig(wrong));
    const names = problems.map((problem) => problem.split(':')[0]!);
    expect(names.toSorted((a, b) => a.localeCompare(b))).toEqual([
      'API_PORT',
      'CREDENTIAL_PEPPER',
      'DATABASE_URL',
      'ENCRYPTION_KEY',
      'SESSION_KEY',
      'TEMPORAL_ADDRESS',
      'WEBHOOK_ALLOW_LOOPBACK',
    ]);
    expect(problems.join('\n')).not.toContain('hunter2');
    expect(problems).toContain('CREDENTIAL_PEPPER: is not set and has no default');
  });

  it('accept a known failpoint, and refuse an unknown one and any failpoint in production', () => {
    const at = (FAILPOINT: string, NODE_ENV = 'test') => ({ ...enough, FAILPOINT, NODE_ENV });
    expect(loadApiConfig(at('after_claim')).failpoint).toEqual({ name: 'after_claim', time: 1 });
    expect(loadWorkerConfig(at('after_gateway:3')).failpoint).toEqual({
      name: 'after_gateway',
      time: 3,
    });
    for (const load of [loadApiConfig, loadWorkerConfig]) {
      expect(load(at('  ', 'production')).failpoint).toBeUndefined();
      expect(problemsOf(() => load(at('after_claim', 'production')))).toEqual([
        'FAILPOINT: must not be set when NODE_ENV is production',
      ]);
      for (const wrong of ['nowhere', 'after_claim:0', 'after_claim:1:1']) {
        expect(problemsOf(() => load(at(wrong)))).toEqual([expect.stringMatching(/^FAILPOINT: /)]);
      }
    }
  });

  describe('with a file of currency limits', () => {
    const folder = mkdtempSync(join(tmpdir(), 'perennial-limits-'));
    const file = join(folder, 'limits.json');
    afterAll(() => rmSync(folder, { recursive: true }));
    const loaders = [loadApiConfig, loadWorkerConfig];

    it('replace the limits of the checked-in table [D-03]', () => {
      writeFileSync(file, '{ "USD": { "minimum": 500, "asOf": "2026-11-01" } }');
      const { currencies } = loadApiConfig({ ...enough, CURRENCY_LIMITS_FILE: file });
      expect(currencies.get('USD')).toMatchObject({ minimum: 500, maximum: 99_999_999 });
      expect(currencies.get('EUR')).toBe(CURRENCIES.get('EUR'));
      expect(problemsOf(() => loadWorkerConfig({ ...enough, CURRENCY_LIMITS_FILE: file }))).toEqual(
        [],
      );
    });

    it.each([
      ['{ "USD": { "minimum": 0 } }', 'Currency overrides: USD.minimum must be a positive integer'],
      ['{ "ZZZ": { "minimum": 1 } }', 'Currency overrides: ZZZ is not in the currency table'],
      ['[]', 'Currency overrides: the file must be a JSON object'],
      ['{ "USD": ', 'is not valid JSON'],
    ])(
      'are refused by API and worker, with the file’s name in the message, when the file is %s [D-03]',
      (text, reason) => {
        writeFileSync(file, text);
        for (const load of loaders) {
          expect(problemsOf(() => load({ ...enough, CURRENCY_LIMITS_FILE: file }))).toEqual([
            `CURRENCY_LIMITS_FILE: ${file}: ${reason}`,
          ]);
        }
      },
    );

    it('are refused by API and worker when the file does not exist [D-03]', () => {
      for (const load of loaders) {
        const missing = { ...enough, CURRENCY_LIMITS_FILE: join(folder, 'none.json') };
        expect(problemsOf(() => load(missing))).toEqual([
          expect.stringMatching(/^CURRENCY_LIMITS_FILE: .*none\.json: ENOENT/),
        ]);
      }
    });
  });

  it('refuse STRIPE_API_URL in production', () => {
    const at = (NODE_ENV: string) => ({
      ...enough,
      NODE_ENV,
      STRIPE_API_URL: 'http://127.0.0.1:8082',
    });
    const double = { stripe: 'http://127.0.0.1:8082' };
    expect(loadApiConfig(at('development')).doubleUrls).toEqual(double);
    expect(loadWorkerConfig(at('development')).doubleUrls).toEqual(double);
    expect(loadEmbeddedConfig(at('development')).stripeUrl).toBe(double.stripe);
    for (const load of [loadApiConfig, loadWorkerConfig, loadEmbeddedConfig]) {
      expect(problemsOf(() => load(at('production')))).toEqual([
        'STRIPE_API_URL: must not be set when NODE_ENV is production',
      ]);
    }
  });

  it('refuse WEBHOOK_ALLOW_LOOPBACK in production [D-55]', () => {
    const production = { ...enough, NODE_ENV: 'production', WEBHOOK_ALLOW_LOOPBACK: 'true' };
    const problem = 'WEBHOOK_ALLOW_LOOPBACK: must be off when NODE_ENV is production';
    expect(problemsOf(() => loadApiConfig(production))).toEqual([problem]);
    expect(problemsOf(() => loadWorkerConfig(production))).toEqual([problem]);
    const development = { ...production, NODE_ENV: 'development' };
    expect(loadApiConfig(development).webhookAllowLoopback).toBe(true);
  });

  it('require from each process only the variables that it uses', () => {
    const { DATABASE_URL, GATEWAY_KEY } = enough;
    expect(loadGatewayConfig({ DATABASE_URL, GATEWAY_KEY }).port).toBe(8081);
    expect(loadEmbeddedConfig({}).databaseUrl).toBeUndefined();
  });

  it('treat an empty variable as not set and remove the trailing slash of a URL', () => {
    const config = loadApiConfig({ ...enough, API_PORT: '', PUBLIC_URL: 'https://pay.example/' });
    expect([config.port, config.publicUrl]).toEqual([8080, 'https://pay.example']);
  });

  it('select the task queues of a worker and refuse an unknown queue', () => {
    const queues = (value: string) => loadWorkerConfig({ ...enough, WORKER_QUEUES: value }).queues;
    expect(queues('billing, charges')).toEqual(['billing', 'charges']);
    expect(problemsOf(() => queues('billing,refunds'))).toHaveLength(1);
  });

  it('replace the embedded Temporal server, but not Postgres, when TEMPORAL_ADDRESS is set', () => {
    const config = loadEmbeddedConfig({ TEMPORAL_ADDRESS: 'temporal:7233' });
    expect([config.temporalAddress, config.databaseUrl]).toEqual(['temporal:7233', undefined]);
    expect(config.temporalPort).toBe(7233);
  });

  it('take the cache folder from PERENNIAL_CACHE_DIR, or else from XDG_CACHE_HOME', () => {
    expect(loadEmbeddedConfig({ XDG_CACHE_HOME: '/x' }).cacheDir).toBe('/x/perennial');
    const own = { XDG_CACHE_HOME: '/x', PERENNIAL_CACHE_DIR: '/own' };
    expect(loadEmbeddedConfig(own).cacheDir).toBe('/own');
  });

  it('of a worker deployment are set together or not at all', () => {
    const one = { ...enough, BUILD_ID: '1.1.0' };
    expect(problemsOf(() => loadWorkerConfig(one))).toEqual([
      'WORKER_DEPLOYMENT_NAME, BUILD_ID: must be set together',
    ]);
    expect(loadWorkerConfig({ ...one, WORKER_DEPLOYMENT_NAME: 'perennial' }).deployment).toEqual({
      deploymentName: 'perennial',
      buildId: '1.1.0',
    });
    expect(loadWorkerConfig(enough).deployment).toBeNull();
  });
});
