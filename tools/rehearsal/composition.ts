import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parse } from 'yaml';

export type Volume =
  | string
  | { readonly type: string; readonly source: string; readonly target: string };

/** A service of docker-compose.yml. */
export interface ComposeService {
  readonly image: string;
  readonly build?: string;
  readonly command?: readonly string[];
  readonly entrypoint?: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly volumes?: readonly Volume[];
  readonly ports?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly profiles?: readonly string[];
  readonly working_dir?: string;
  readonly mem_limit?: string;
  readonly stop_grace_period?: string;
}

type Composition = Readonly<Record<string, ComposeService>>;

/** As compose, takes each `${NAME:-default}` and `${NAME:?message}` from `.env`. Throws for a missing one. */
export function readComposition(dotEnv: Readonly<Record<string, string>>): Composition {
  const variable = /\$\{(\w+):([-?])([^}]*)\}/g;
  const fill = (_: string, name: string, kind: string, rest: string): string => {
    const value = dotEnv[name] || (kind === '-' ? rest : undefined);
    if (value === undefined) throw new Error(`${name}: ${rest}`);
    return value;
  };
  const filled = (_: unknown, value: unknown): unknown =>
    typeof value === 'string' ? value.replaceAll(variable, fill) : value;
  return readServices(filled);
}

/** The services, with each text of the file as `filled` changes it. */
export function readServices(filled = (_: unknown, value: unknown): unknown => value): Composition {
  const file = readFileSync('docker-compose.yml', 'utf8');
  return (parse(file, filled, { merge: true }) as { services: Composition }).services;
}

/** The services that `docker compose up` starts, each after those that it depends on. */
export function inOrder(services: Composition): string[] {
  const order = new Set<string>();
  const visit = (name: string): void => {
    Object.keys(services[name]?.depends_on ?? {}).forEach(visit);
    order.add(name);
  };
  for (const [name, { profiles }] of Object.entries(services)) if (!profiles) visit(name);
  return [...order];
}

/** What runs in place of a container. Paths and addresses in the container are replaced by those of this machine. */
export interface Container {
  readonly name: string;
  readonly service: ComposeService;
  readonly address: string;
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly command: readonly string[];
  readonly healthcheck: readonly string[];
  /** Paths in the container, and the files here that are mounted at them. */
  readonly mounts: readonly (readonly [inContainer: string, here: string])[];
}

export interface Image {
  readonly app: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** The commands of foreign images, for services without one. */
const IMAGE_COMMANDS: Readonly<Record<string, readonly string[]>> = {
  'temporalio/server': ['temporal-server', 'start'],
  'temporalio/ui': ['temporal-ui', '--env', 'docker', 'start'],
};

/** Gives each container a loopback address, so that it keeps the ports of the composition. */
export function containerOf(
  services: Composition,
  image: Image,
  name: string,
  replica = 1,
): Container {
  const service = services[name];
  if (service === undefined) throw new Error(`docker-compose.yml has no service ${name}`);
  const addressOf = (host: string): string =>
    `127.77.${Object.keys(services).indexOf(host) + 1}.${host === name ? replica : 1}`;
  const mounts = (service.volumes ?? []).map((volume) => {
    const { source, target } = typeof volume === 'string' ? splitVolume(volume) : volume;
    // Each replica has its own named volumes.
    const own = join(dirname(image.app), 'volumes', `${source}-${replica}`);
    return [target, /^[./]/.test(source) ? resolve(source) : own] as const;
  });
  const places: [from: string, to: string][] = [['/app', image.app]];
  // A published port of this machine leads to its container.
  for (const [owner, { ports = [] }] of Object.entries(services)) {
    for (const [host, outer, inner] of ports.map((port) => port.split(':'))) {
      places.push([`//${host}:${outer}`, `//${addressOf(owner)}:${inner}`]);
    }
  }
  const here = (text: string): string =>
    places.reduce(
      (changed, [from, to]) => changed.replaceAll(from, to),
      inContainer({ mounts }, text),
    );
  const address = addressOf(name);
  const host = new RegExp(`(?<=^|[/@])(${Object.keys(services).join('|')})(?=:\\d)`);
  const variable = ([key, value]: [string, string]): [string, string] => {
    if (/_(HOST|SEEDS)$/.test(key) && value in services) return [key, addressOf(value)];
    return [key, here(value).replace('0.0.0.0', address).replace(host, addressOf)];
  };
  const isOurs = service.build !== undefined;
  const environment = { ...(isOurs ? image.environment : {}), ...service.environment };
  const { entrypoint = [], command = IMAGE_COMMANDS[service.image.split(':')[0] ?? ''] ?? [] } =
    service;
  return {
    name: replica === 1 ? name : `${name}-${replica}`,
    service,
    mounts,
    address,
    folder: here(service.working_dir ?? (isOurs ? '/app' : '/')),
    environment: Object.fromEntries(Object.entries(environment).map(variable)),
    command: [...entrypoint, ...(entrypoint.length > 0 && !isOurs ? [] : command)].map(here),
    healthcheck: (service.healthcheck?.test ?? [])
      .slice(1)
      .map((part) => part.replace(/127\.0\.0\.1|localhost/, address)),
  };
}

/** The text with each path of a mount replaced by its path on this machine. */
export const inContainer = ({ mounts }: Pick<Container, 'mounts'>, text: string): string =>
  mounts.reduce((changed, [from, to]) => changed.replaceAll(from, to), text);

function splitVolume(volume: string) {
  const [source = '', target = ''] = volume.split(':');
  return { source, target };
}
