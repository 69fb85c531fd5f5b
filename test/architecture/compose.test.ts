import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { buildSync } from 'esbuild';
import { parse } from 'yaml';
import { CURRENCIES } from '../../domain/currencies.ts';
import { SEARCH_ATTRIBUTES } from '../../tools/embedded/temporal-server.ts';
import {
  loadApiConfig,
  loadGatewayConfig,
  loadMigrateConfig,
  loadWorkerConfig,
} from '../../runtime/config.ts';
import { loadOperatorConfig } from '../../cli/command-line/config.ts';
import { VARIABLE_NAMES } from '../../tools/config.ts';
import { readComposition, readServices } from '../../tools/rehearsal/composition.ts';
import type { Volume } from '../../tools/rehearsal/composition.ts';
import { STOP_WITHIN_MS } from '../../runtime/shutdown.ts';

const text = readFileSync('docker-compose.yml', 'utf8');
const services = readServices();
const { volumes } = parse(text) as { volumes: Record<string, unknown> };
const dockerfile = readFileSync('Dockerfile', 'utf8');

const STARTED = ['migrate', 'sandbox-gateway', 'api', 'worker'] as const;
const OURS = [...STARTED, 'ops'] as const;

/** Variables that only docker-compose.yml reads. */
const COMPOSE_ONLY = [
  'POSTGRES_PASSWORD',
  'PERENNIAL_DB_PASSWORD',
  'TEMPORAL_DB_PASSWORD',
  'WORKERS',
];

/** Variables that no container gets. */
const NOT_PASSED: Readonly<Record<string, string>> = {
  DATA_DIR: 'only npm start has one',
  DEMO_CHECKOUT_URL: 'npm start sets it',
  FAILPOINT: 'refused in production',
  STRIPE_API_URL: 'refused in production',
  WEBHOOK_ALLOW_LOOPBACK: 'refused in production',
  WORKFLOW_BUNDLE: 'the image sets it',
};

/** Variables whose value depends on the containers and not on `.env`. */
const FIXED = [
  'API_PORT',
  'CURRENCY_LIMITS_FILE',
  'DATABASE_URL',
  'GATEWAY_PORT',
  'GATEWAY_URL',
  'HOST',
  'METRICS_PORT',
  'NODE_ENV',
  'TEMPORAL_ADDRESS',
];

const LOADERS = {
  'sandbox-gateway': loadGatewayConfig,
  api: loadApiConfig,
  worker: loadWorkerConfig,
  migrate: loadMigrateConfig,
  ops: loadOperatorConfig,
} as const;

/** The variables of `.env.example`, with their values there. */
const documented = new Map(
  [...readFileSync('.env.example', 'utf8').matchAll(/^# ([A-Z][A-Z0-9_]*)=(.*)$/gm)].map(
    ([, name, value]) => [name!, value!],
  ),
);

/**
 * The environment of a service with these variables in `.env`, and a value for every required one. A path in the
 * container is replaced by the path of the mounted file.
 */
function environmentOf(
  name: keyof typeof LOADERS,
  dotEnv: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const required = [...text.matchAll(/\$\{(\w+):\?/g)].map(([, variable]) => variable!);
  const sample = (variable: string) =>
    variable.endsWith('_PASSWORD') ? 'password' : Buffer.alloc(32, 7).toString('base64');
  const secrets = Object.fromEntries(required.map((variable) => [variable, sample(variable)]));
  const { environment, volumes: mounted = [] } = readComposition({ ...secrets, ...dotEnv })[name]!;
  const mounts = new Map(mounted.map((volume) => [targetOf(volume), sourceOf(volume)]));
  return Object.fromEntries(
    Object.entries(environment).map(([variable, value]) => [variable, mounts.get(value) ?? value]),
  );
}

function sourceOf(volume: Volume): string {
  return typeof volume === 'string' ? volume.split(':')[0]! : volume.source;
}

function targetOf(volume: Volume): string {
  return typeof volume === 'string' ? volume.split(':')[1]! : volume.target;
}

/** The names of the variables that the configuration of a program reads. */
function variablesOf(name: keyof typeof LOADERS): string[] {
  const given = environmentOf(name);
  const names = new Set<string>();
  const environment = new Proxy(given, {
    get(_, variable) {
      names.add(String(variable));
      return given[String(variable)];
    },
  });
  LOADERS[name](environment);
  return [...names];
}

describe('docker-compose.yml', () => {
  it.each(STARTED)('starts %s from a file that exists and is in the image', (name) => {
    const service = services[name]!;
    expect(service.build).toBe('.');
    const first = name === 'worker' ? ['--import', './runtime/workflow-threads.mjs'] : [];
    const file = service.command!.at(-1)!;
    expect(service.command).toEqual(['node', '--import', 'tsx', ...first, file]);
    for (const path of [...first.slice(1), file]) {
      expect(existsSync(path)).toBe(true);
      const folder = path.replace('./', '').split('/')[0]!;
      expect(dockerfile).toMatch(new RegExp(`^COPY (.* )?${folder.replace('.', '\\.')} `, 'm'));
    }
  });

  it.each(OURS)('gives %s only variables that the configuration reads', (name) => {
    const unknown = Object.keys(services[name]!.environment).filter(
      (variable) => !(VARIABLE_NAMES as readonly string[]).includes(variable),
    );
    expect(unknown).toEqual([]);
  });

  it.each(OURS)('gives %s every documented variable that its program reads', (name) => {
    const missing = variablesOf(name).filter(
      (variable) =>
        documented.has(variable) &&
        !(variable in NOT_PASSED) &&
        !(variable in services[name]!.environment),
    );
    expect(missing).toEqual([]);
  });

  it('takes every value from .env except those that depend on the containers', () => {
    const fixed = OURS.flatMap((name) =>
      Object.entries(services[name]!.environment)
        .filter(([variable, value]) => !value.startsWith(`\${${variable}:`))
        .map(([variable]) => variable),
    );
    expect([...new Set(fixed)].toSorted()).toEqual(FIXED);
  });

  it('has the defaults of .env.example', () => {
    const defaults = OURS.flatMap((name) =>
      Object.values(services[name]!.environment).flatMap((value) => [
        ...value.matchAll(/\$\{([A-Z_]+):-([^}]*)\}/g),
      ]),
    );
    expect(defaults.length).toBeGreaterThan(0);
    for (const [, variable, value] of defaults) {
      expect([variable, value]).toEqual([variable, documented.get(variable!)]);
    }
  });

  it('passes the settings of .env to the programs, and the default of an empty one', () => {
    const api = (dotEnv: Record<string, string>) => {
      const config = loadApiConfig(environmentOf('api', dotEnv));
      return [config.trustedProxies, config.requestsPerSecond];
    };
    expect(api({ TRUSTED_PROXIES: '2', RATE_LIMIT_PER_SECOND: '7' })).toEqual([2, 7]);
    expect(api({ TRUSTED_PROXIES: '', RATE_LIMIT_PER_SECOND: '' })).toEqual([0, 100]);
    const worker = loadWorkerConfig(
      environmentOf('worker', { RETENTION_DAYS: '7', MAINTENANCE: 'off' }),
    );
    expect([worker.retentionMs, worker.isMaintenanceOn]).toEqual([604_800_000, false]);
  });

  it('mounts the file of CURRENCY_LIMITS_FILE in the API and the worker, and without it a file without limits', () => {
    const folder = mkdtempSync(join(tmpdir(), 'limits-'));
    const file = join(folder, 'limits.json');
    writeFileSync(file, '{ "EUR": { "minimum": 97, "asOf": "2026-11-01" } }');
    const dotEnv = { CURRENCY_LIMITS_FILE: file };
    try {
      expect(environmentOf('worker', dotEnv)).toMatchObject(dotEnv);
      const { currencies } = loadApiConfig(environmentOf('api', dotEnv));
      expect(currencies.get('EUR')).toMatchObject({ minimum: 97 });
    } finally {
      rmSync(folder, { recursive: true });
    }
    expect(loadApiConfig(environmentOf('api')).currencies).toEqual(CURRENCIES);
  });

  it.each(OURS)('gives %s a longer grace period than its stop may take', (name) => {
    const [, seconds] = /^(\d+)s$/.exec(services[name]!.stop_grace_period!)!;
    expect(Number(seconds) * 1_000).toBeGreaterThan(STOP_WITHIN_MS);
  });

  it('configures every process completely, and makes the API and the gateway listen on 0.0.0.0', () => {
    const api = loadApiConfig(environmentOf('api'));
    const worker = loadWorkerConfig(environmentOf('worker'));
    const gateway = loadGatewayConfig(environmentOf('sandbox-gateway'));
    expect([api.host, api.port, gateway.host, gateway.port]).toEqual([
      '0.0.0.0',
      8080,
      '0.0.0.0',
      8081,
    ]);
    for (const config of [api, worker]) {
      expect(config.databaseUrl).toBe('postgres://perennial:password@postgres:5432/perennial');
      expect(config.temporalAddress).toBe('temporal:7233');
      expect(config.gatewayUrl).toBe('http://sandbox-gateway:8081');
    }
    expect(api.webhookAllowLoopback).toBe(false);
  });

  it('reads only variables of the configuration, the passwords of the databases and the number of workers', () => {
    const taken = [...text.matchAll(/\$\{([A-Z_]+)/g)].map((match) => match[1]!);
    const known = [...VARIABLE_NAMES, ...COMPOSE_ONLY] as string[];
    expect(taken.filter((name) => !known.includes(name))).toEqual([]);
  });

  it('pins every image to a version and uses no retired image', () => {
    const images = Object.values(services)
      .filter((service) => service.build === undefined)
      .map((service) => service.image);
    expect(images.filter((image) => !/:\d+\.\d+(\.\d+)?$/.test(image))).toEqual([]);
    expect(images.filter((image) => image.includes('auto-setup'))).toEqual([]);
  });

  it('mounts only existing files and declared volumes', () => {
    const sources = Object.values(services).flatMap((service) =>
      (service.volumes ?? []).map((volume) => sourceOf(volume).replace(/^\$\{\w+:-(.*)\}$/, '$1')),
    );
    for (const source of sources) {
      expect(source.startsWith('./') ? existsSync(source) : source in volumes).toBe(true);
    }
    expect([...new Set(sources)].toSorted()).toEqual([
      './docker/archive-wal.sh',
      './docker/backup.sh',
      './docker/currency-limits.json',
      './docker/postgres-roles.sql',
      './docker/restore.sh',
      './docker/temporal-dynamic-config.yaml',
      './docker/temporal-namespace.sh',
      './docker/temporal-schema.sh',
      'backups',
      'postgres',
    ]);
  });

  it('opens ports on the loopback address only', () => {
    const ports = Object.values(services).flatMap((service) => service.ports ?? []);
    expect(ports.toSorted()).toEqual([
      '127.0.0.1:${POSTGRES_PORT:-54329}:5432',
      '127.0.0.1:${TEMPORAL_PORT:-7233}:7233',
      '127.0.0.1:8080:8080',
      '127.0.0.1:8081:8081',
      '127.0.0.1:8233:8080',
    ]);
  });
});

/** The connection of the metrics page and the probes. */
const PROBE = 1;

describe('the databases of docker-compose.yml', () => {
  const roles = readFileSync('docker/postgres-roles.sql', 'utf8');
  const limits = new Map(
    [...roles.matchAll(/create role (\w+) login .* connection limit (\d+)/g)].map(
      ([, role, limit]) => [role!, Number(limit)],
    ),
  );
  const setting = (name: string) =>
    Number(
      services['postgres']!.command!.find((part) => part.startsWith(`${name}=`))!.split('=')[1],
    );
  /** The connections of a pool, from the source of its program. */
  const pool = (file: string, pattern: RegExp) =>
    Number(pattern.exec(readFileSync(file, 'utf8'))![1]);

  it('leave connections to an operator when both roles have taken theirs', () => {
    const taken = [...limits.values()].reduce((sum, limit) => sum + limit, 0);
    const forAll = setting('max_connections') - setting('superuser_reserved_connections');
    expect(taken).toBeLessThanOrEqual(forAll);
  });

  it('have connections for three API processes, three workers and the gateway, and for Temporal', () => {
    const ofProduct =
      3 * (pool('api/main.ts', /POOL_SIZE = (\d+)/) + PROBE) +
      3 * (pool('worker.ts', /POOL_SIZE = (\d+)/) + PROBE) +
      pool('gateways/sandbox/book-schema.ts', /max: (\d+)/);
    expect(limits.get('perennial')).toBeGreaterThanOrEqual(ofProduct + 2);
    const { SQL_MAX_CONNS, SQL_VIS_MAX_CONNS } = services['temporal']!.environment;
    const ofTemporal = 4 * (Number(SQL_MAX_CONNS) + Number(SQL_VIS_MAX_CONNS));
    expect(limits.get('temporal')).toBeGreaterThanOrEqual(ofTemporal + 2);
  });

  it('are used by no process as the superuser', () => {
    const given = Object.entries(services).flatMap(([name, { environment }]) =>
      Object.values(environment).some((value) => value.includes('${POSTGRES_PASSWORD'))
        ? [name]
        : [],
    );
    expect(given).toEqual(['postgres']);
    expect(roles).not.toContain('superuser;');
  });
});

describe('the service ops', () => {
  it.each(['merchant', 'review', 'audit', 'verify', 'import'])(
    'has the command %s.ts with its packages',
    (command) => {
      const { working_dir: folder, entrypoint, profiles } = services['ops']!;
      expect(profiles).toEqual(['ops']);
      expect(entrypoint).toEqual(['node', '--import', 'tsx']);
      const file = join(folder!.replace('/app/', ''), `${command}.ts`);
      const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
        dependencies: Record<string, string>;
      };
      expect(packagesOf(file).filter((name) => !(name in dependencies))).toEqual([]);
    },
  );
});

/** The packages that a program loads at its start. */
function packagesOf(entry: string): string[] {
  const { metafile } = buildSync({
    entryPoints: [entry],
    bundle: true,
    write: false,
    metafile: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    outdir: 'out',
    logLevel: 'silent',
  });
  const imported = Object.values(metafile.outputs).flatMap((output) => output.imports);
  const names = imported.map(({ path }) => path).filter((path) => !isBuiltin(path));
  return names.map((path) =>
    path
      .split('/')
      .slice(0, path.startsWith('@') ? 2 : 1)
      .join('/'),
  );
}

describe('docker/temporal-namespace.sh', () => {
  it('registers exactly the search attributes of the embedded server', () => {
    const script = readFileSync('docker/temporal-namespace.sh', 'utf8');
    const registered = [...script.matchAll(/--name (\w+) --type (\w+)/g)].map(([, name, type]) => [
      name!,
      type!,
    ]);
    expect(Object.fromEntries(registered)).toEqual(SEARCH_ATTRIBUTES);
  });
});

describe('Dockerfile', () => {
  it('copies only existing files, every folder that production code imports, and no tool', () => {
    const copied = [...dockerfile.matchAll(/^COPY (.+)$/gm)].flatMap(([, line]) =>
      line!.split(' ').slice(0, -1),
    );
    expect(copied.filter((path) => !existsSync(path))).toEqual([]);
    const folders = [
      'domain',
      'workflows',
      'activities',
      'gateways',
      'api',
      'db',
      'runtime',
      'temporal',
      'cli',
    ];
    expect(copied).toEqual(expect.arrayContaining(folders));
    expect(copied).not.toContain('tools');
    const allowed = readFileSync('.dockerignore', 'utf8');
    for (const path of copied) expect(allowed).toContain(`!${path}\n`);
  });

  it('uses the Node version of .nvmrc and the command of the worker service', () => {
    const version = readFileSync('.nvmrc', 'utf8').trim();
    expect(dockerfile).toContain(`FROM node:${version}-bookworm-slim`);
    const command = /^CMD (.+)$/m.exec(dockerfile)![1]!;
    expect(JSON.parse(command)).toEqual(services['worker']!.command);
  });
});
