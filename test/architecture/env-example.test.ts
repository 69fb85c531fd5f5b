import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { describe, expect, it } from 'vitest';
import {
  loadApiConfig,
  loadGatewayConfig,
  loadWorkerConfig,
  SECRETS,
} from '../../runtime/config.ts';
import { ConfigError } from '../../runtime/environment.ts';
import { loadEmbeddedConfig, VARIABLE_NAMES } from '../../tools/config.ts';

/** Variables that only docker-compose.yml reads. */
const COMPOSE_ONLY = [
  'POSTGRES_PASSWORD',
  'PERENNIAL_DB_PASSWORD',
  'TEMPORAL_DB_PASSWORD',
  'WORKERS',
];

const lines = readFileSync('.env.example', 'utf8').split('\n');
const assignments = lines.flatMap((line) => {
  const match = /^# ([A-Z][A-Z0-9_]*)=(.*)$/.exec(line);
  return match === null ? [] : [{ name: match[1]!, value: match[2]! }];
});

/** `.env.example` with every assignment uncommented and every secret filled in. */
const filledIn = parseEnv(
  [
    ...assignments.map(({ name, value }) => `${name}=${value}`),
    ...SECRETS.map((name) => `${name}=${Buffer.alloc(32, 1).toString('base64')}`),
  ].join('\n'),
);

describe('.env.example', () => {
  it('names every variable exactly once, and no unknown variable', () => {
    const named = assignments.map(({ name }) => name).toSorted();
    expect(named).toEqual([...VARIABLE_NAMES, ...COMPOSE_ONLY].toSorted());
  });

  it('has values that every process accepts', () => {
    expect(loadApiConfig(filledIn).port).toBe(8080);
    expect(loadWorkerConfig(filledIn).queues).toEqual(['billing', 'charges', 'webhooks']);
    expect(loadGatewayConfig(filledIn).port).toBe(8081);
    expect(loadEmbeddedConfig(filledIn).postgresPort).toBe(54_329);
  });

  it('gives every optional variable its default value', () => {
    const required = { DATABASE_URL: filledIn['DATABASE_URL'] };
    const secrets = Object.fromEntries(SECRETS.map((name) => [name, filledIn[name]]));
    const atDefaults = loadApiConfig({ ...required, ...secrets });
    expect(loadApiConfig(filledIn)).toEqual(atDefaults);
    expect(loadWorkerConfig(filledIn)).toEqual(loadWorkerConfig({ ...required, ...secrets }));
    expect(loadGatewayConfig(filledIn)).toEqual(loadGatewayConfig({ ...required, ...secrets }));
  });

  it('gives no secret a value', () => {
    const given = assignments.filter(({ name, value }) => isSecret(name) && value !== '');
    expect(given).toEqual([]);
  });
});

describe('a process without settings', () => {
  it('refuses to start and names all missing variables at once', () => {
    expect(() => loadApiConfig({})).toThrow(
      new ConfigError([
        'DATABASE_URL: is not set and has no default',
        'GATEWAY_KEY: is not set and has no default',
        'SESSION_KEY: is not set and has no default',
        'ENCRYPTION_KEY: is not set and has no default',
        'CREDENTIAL_PEPPER: is not set and has no default',
      ]),
    );
  });
});

function isSecret(name: string): boolean {
  return (SECRETS as readonly string[]).includes(name) || name.endsWith('_PASSWORD');
}
