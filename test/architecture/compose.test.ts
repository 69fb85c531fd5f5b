import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { SEARCH_ATTRIBUTES } from '../../embedded/temporal-server.ts';
import {
  loadApiConfig,
  loadGatewayConfig,
  loadWorkerConfig,
  VARIABLE_NAMES,
} from '../../runtime/config.ts';
import { STOP_WITHIN_MS } from '../../runtime/shutdown.ts';

interface ComposeService {
  readonly image?: string;
  readonly build?: string;
  readonly command?: readonly string[];
  readonly entrypoint?: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly stop_grace_period?: string;
}

const text = readFileSync('docker-compose.yml', 'utf8');
const { services, volumes } = parse(text, { merge: true }) as {
  services: Record<string, ComposeService>;
  volumes: Record<string, unknown>;
};
const dockerfile = readFileSync('Dockerfile', 'utf8');

const OURS = ['sandbox-gateway', 'api', 'worker'];

/** Variables that only docker-compose.yml reads. */
const COMPOSE_ONLY = ['POSTGRES_PASSWORD'];

/**
 * The variables that each image documents: for admin-tools the variables of temporal-sql-tool and the
 * Temporal CLI, for the server the variables in its configuration template.
 */
const IMAGE_VARIABLES: Readonly<Record<string, readonly string[]>> = {
  postgres: ['POSTGRES_USER', 'POSTGRES_PASSWORD', 'POSTGRES_DB'],
  'temporalio/admin-tools': [
    'SQL_PLUGIN',
    'SQL_HOST',
    'SQL_PORT',
    'SQL_USER',
    'SQL_PASSWORD',
    'TEMPORAL_ADDRESS',
    'TEMPORAL_NAMESPACE',
  ],
  'temporalio/server': [
    'DB',
    'DB_PORT',
    'POSTGRES_SEEDS',
    'POSTGRES_USER',
    'POSTGRES_PWD',
    'BIND_ON_IP',
    'DYNAMIC_CONFIG_FILE_PATH',
  ],
  'temporalio/ui': ['TEMPORAL_ADDRESS'],
};

const imageOf = (service: ComposeService): string => service.image!.split(':')[0]!;

/** The environment of a service, with a value or the default for every `${NAME}`. */
function environmentOf(name: string): Record<string, string> {
  const sample = Buffer.alloc(32, 7).toString('base64');
  return Object.fromEntries(
    Object.entries(services[name]!.environment).map(([variable, value]) => [
      variable,
      value
        .replaceAll(/\$\{[A-Z_]+:-([^}]*)\}/g, '$1')
        .replaceAll(/\$\{POSTGRES_PASSWORD:\?[^}]*\}/g, 'password')
        .replaceAll(/\$\{[A-Z_]+:\?[^}]*\}/g, sample),
    ]),
  );
}

describe('docker-compose.yml', () => {
  it('has the services of a production installation', () => {
    expect(Object.keys(services)).toEqual([
      'postgres',
      'temporal-schema',
      'temporal',
      'temporal-namespace',
      'temporal-ui',
      'sandbox-gateway',
      'api',
      'worker',
    ]);
  });

  it.each(OURS)('starts %s from a file that exists and is in the image', (name) => {
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

  it('reads only variables of the configuration, and POSTGRES_PASSWORD', () => {
    const taken = [...text.matchAll(/\$\{([A-Z_]+)/g)].map((match) => match[1]!);
    const known = [...VARIABLE_NAMES, ...COMPOSE_ONLY] as string[];
    expect(taken.filter((name) => !known.includes(name))).toEqual([]);
  });

  it.each(Object.keys(IMAGE_VARIABLES))('gives image %s only documented variables', (image) => {
    const using = Object.values(services).filter(
      (service) => service.build === undefined && imageOf(service) === image,
    );
    expect(using.length).toBeGreaterThan(0);
    const unknown = using
      .flatMap((service) => Object.keys(service.environment))
      .filter((variable) => !IMAGE_VARIABLES[image]!.includes(variable));
    expect(unknown).toEqual([]);
  });

  it('pins every image to a version and uses no retired image', () => {
    const images = Object.values(services)
      .filter((service) => service.build === undefined)
      .map((service) => service.image!);
    expect(images.filter((image) => !/:\d+\.\d+(\.\d+)?$/.test(image))).toEqual([]);
    expect(images.filter((image) => image.includes('auto-setup'))).toEqual([]);
  });

  it('mounts only existing files and declared volumes', () => {
    const sources = Object.values(services).flatMap((service) =>
      (service.volumes ?? []).map((volume) => volume.split(':')[0]!),
    );
    for (const source of sources) {
      expect(source.startsWith('./') ? existsSync(source) : source in volumes).toBe(true);
    }
    expect(sources.toSorted()).toEqual([
      './docker/temporal-dynamic-config.yaml',
      './docker/temporal-namespace.sh',
      './docker/temporal-schema.sh',
      'postgres',
    ]);
  });

  it('runs only mounted scripts with valid shell syntax', () => {
    const mounted = Object.values(services).flatMap((service) => service.volumes ?? []);
    const scripts = Object.values(services).flatMap((service) =>
      service.entrypoint === undefined ? [] : [service.entrypoint],
    );
    expect(scripts.length).toBe(2);
    for (const [shell, script] of scripts) {
      expect(shell).toBe('/bin/sh');
      const source = mounted.find((volume) => volume.split(':')[1] === script)?.split(':')[0];
      expect(source).toBeDefined();
      expect(spawnSync('sh', ['-n', source!]).status).toBe(0);
    }
  });

  it('waits for each dependency to be healthy or, for a one-time service, to have ended', () => {
    const waits = Object.values(services).flatMap((service) =>
      Object.entries(service.depends_on ?? {}).map(([name, { condition }]) => [name, condition]),
    );
    const kinds = Object.fromEntries(waits);
    expect(kinds).toEqual({
      postgres: 'service_healthy',
      'temporal-schema': 'service_completed_successfully',
      temporal: 'service_healthy',
      'temporal-namespace': 'service_completed_successfully',
    });
    expect(waits.filter(([name, condition]) => kinds[name!] !== condition)).toEqual([]);
    expect(services['postgres']!.healthcheck).toBeDefined();
    expect(services['temporal']!.healthcheck).toBeDefined();
  });

  it('opens ports on the loopback address only', () => {
    const ports = Object.values(services).flatMap((service) => service.ports ?? []);
    expect(ports.toSorted()).toEqual([
      '127.0.0.1:8080:8080',
      '127.0.0.1:8081:8081',
      '127.0.0.1:8233:8080',
    ]);
  });
});

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
  it('copies only existing files, and every folder that production code imports', () => {
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
    ];
    expect(copied).toEqual(expect.arrayContaining(folders));
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
