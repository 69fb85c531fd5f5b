import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import type { Report } from '../embedded/progress.ts';
import { loadOrMakeSecrets } from '../embedded/secrets.ts';
import type { ClientSettings } from '../../client/index.ts';
import { containerOf, inContainer, inOrder, readComposition } from './composition.ts';
import type { Container, Image } from './composition.ts';
import { createMachine } from './machine.ts';

/** The replica of Postgres with the gateway's book, which a backup of the product does not hold. */
export const BOOK = 2;

const JOBS = ['temporal-schema', 'temporal-namespace', 'migrate'];

/** With these variables, webhooks may go to this machine. */
export const LOOPBACK = { NODE_ENV: 'test', WEBHOOK_ALLOW_LOOPBACK: 'true' };

export type Merchant = Pick<ClientSettings, 'apiUrl' | 'keyId' | 'secret'>;

export interface RehearsalOptions {
  readonly image: Image;
  readonly folder: string;
  /** A folder with the programs of foreign images. */
  readonly programs: string;
  readonly say: Report;
}

export const secondsSince = (from: number): string =>
  ((performance.now() - from) / 1_000).toFixed(1);

/** The services of docker-compose.yml, as processes of this machine. */
export class Rehearsal {
  readonly folder: string;
  readonly say: Report;
  readonly secrets;
  readonly machine;
  /** Every container that was started, in this order. */
  readonly containers: Container[] = [];
  private readonly options: RehearsalOptions;
  private readonly services;
  private readonly sessions: postgres.Sql[] = [];

  constructor(options: RehearsalOptions) {
    this.options = options;
    this.folder = options.folder;
    this.say = options.say;
    this.secrets = loadOrMakeSecrets(join(options.folder, 'secrets.json'));
    this.machine = createMachine(options.folder, options.programs);
    this.services = readComposition({
      ...this.secrets,
      POSTGRES_PASSWORD: this.secrets.postgresPassword,
      PERENNIAL_DB_PASSWORD: randomBytes(16).toString('hex'),
      TEMPORAL_DB_PASSWORD: randomBytes(16).toString('hex'),
      // The payers of the load send their addresses, as a proxy does.
      TRUSTED_PROXIES: '1',
    });
  }

  /** A variable of the service `ops`. */
  given(variable: string): string {
    return this.make('ops').environment[variable] ?? '';
  }

  /** Starts every service as `docker compose up --scale worker=2` does, twice. */
  async start(): Promise<void> {
    for (const name of inOrder(this.services)) {
      await (JOBS.includes(name) ? this.job(name) : this.up(name));
      if (name === 'postgres') await this.add(this.make(name, BOOK));
    }
    this.say('as docker compose up does the second time, each job runs again:');
    for (const name of JOBS) await this.job(name);
    await this.up('worker', { replicas: 2 });
  }

  /** Starts the containers of the service that do not run: all that ran before, or this number. */
  async up(name: string, { replicas = 0, variables = {} } = {}): Promise<void> {
    const count = replicas || this.ofService(name).length || 1;
    for (let replica = 1; replica <= count; replica += 1) {
      await this.add(this.make(name, replica, variables));
    }
  }

  /** Starts a container, if it does not run. */
  async add(container: Container): Promise<void> {
    const { name, healthcheck } = container;
    if (!this.containers.some((known) => known.name === name)) this.containers.push(container);
    if (this.machine.isUp(container)) return;
    const from = performance.now();
    await this.machine.start(container);
    const state = healthcheck.length > 0 ? 'is healthy' : 'has started';
    this.say(`${name} ${state} after ${secondsSince(from)} s`);
  }

  async restart(names: readonly string[], variables: Record<string, string>): Promise<void> {
    this.say(`with ${JSON.stringify(variables)}:`);
    for (const name of names) {
      await this.stop(name);
      await this.up(name, { variables });
    }
  }

  async stop(...names: string[]): Promise<void> {
    for (const one of names.flatMap((name) => this.ofService(name))) {
      await this.machine.stop(one.name);
    }
  }

  async createMerchant(): Promise<Merchant> {
    const created = await this.ops('merchant.ts', '--json', 'create', '--name', 'Tea club');
    const { keyId, secret } = JSON.parse(created) as { keyId: string; secret: string };
    this.say(`ops merchant.ts create: ${keyId}`);
    return { apiUrl: this.given('PUBLIC_URL'), keyId, secret };
  }

  /** Throws if a record is wrong. */
  async expectRight(): Promise<void> {
    const lines = (await this.ops('verify.ts')).split('\n').filter((line) => line.includes('✓'));
    this.say(`ops verify.ts: ${lines.length} invariants hold`);
  }

  /** Runs a command of the service `ops`. Returns its output. */
  ops(...args: string[]): Promise<string> {
    const ops = this.make('ops');
    return this.machine.run({ ...ops, command: [...(ops.service.entrypoint ?? []), ...args] });
  }

  /** The lines of `ops verify.ts` with these options, also if a record is wrong. */
  async verify(...options: string[]): Promise<string[]> {
    const ops = this.make('ops');
    const verify = [...(ops.service.entrypoint ?? []), 'verify.ts', ...options];
    const command = ['sh', '-c', '"$0" "$@" || :', ...verify];
    return (await this.machine.run({ ...ops, command })).split('\n');
  }

  /** A session of the superuser. It ends with the rehearsal. */
  sql(database: string, replica = 1): postgres.Sql {
    const url = new URL(this.given('DATABASE_URL'));
    const password = this.secrets.postgresPassword;
    const hostname = this.make('postgres', replica).address;
    Object.assign(url, { username: 'postgres', password, hostname, pathname: `/${database}` });
    const session = postgres(url.href, { max: 1, onnotice: () => undefined });
    this.sessions.push(session);
    return session;
  }

  /** Runs the commands `docker compose …` of the nth block of a section of docs/operations.md. */
  async follow(section: string, block: number, variables: Record<string, string> = {}) {
    const document = readFileSync('docs/operations.md', 'utf8');
    const text = document.split(`\n## ${section}\n`)[1]?.split('```')[2 * block + 1] ?? '';
    const lines = text.split('\n').filter((line) => line.startsWith('docker compose '));
    if (lines.length === 0) throw new Error(`docs/operations.md has no commands in ${section}`);
    for (const line of lines) {
      this.say(line);
      const words = line.replaceAll(/"?\$(\w+)"?/g, (_, name: string) => variables[name] ?? '');
      await this.compose(words.match(/(?<=')[^']*(?=')|[^\s']+/g)?.slice(2) ?? []);
    }
  }

  private async compose([verb = '', ...words]: string[]): Promise<void> {
    const plain = words.filter((word) => !word.startsWith('-'));
    if (verb === 'stop') {
      for (const { name } of this.containers.toReversed()) await this.machine.stop(name);
    } else if (verb === 'up') {
      for (const name of plain) await this.up(name);
    } else {
      // exec: `postgres sh …`; run: `--entrypoint sh postgres …`
      const [service = '', ...rest] = verb === 'run' ? plain.slice(1) : plain;
      const container = this.make(service);
      const command = verb === 'run' ? ['sh', ...rest] : rest;
      const environment = { ...container.environment, PGHOST: container.address };
      const here = command.map((word) => inContainer(container, word));
      this.say((await this.machine.run({ ...container, environment, command: here })).trim());
    }
  }

  async down(): Promise<void> {
    const from = performance.now();
    // After a failure a drill may still hold a connection.
    for (const session of this.sessions) await session.end({ timeout: 5 });
    for (const { name } of this.containers.toReversed()) await this.machine.stop(name);
    this.say(`docker compose down: all stopped after ${secondsSince(from)} s`);
  }

  private ofService(name: string): Container[] {
    return this.containers.filter(({ service }) => service === this.services[name]);
  }

  private async job(name: string): Promise<void> {
    await this.machine.run(this.make(name));
    this.say(`${name} has completed`);
  }

  private make(name: string, replica = 1, variables: Record<string, string> = {}): Container {
    const container = containerOf(this.services, this.options.image, name, replica);
    const environment = { ...container.environment, ...variables };
    if (name === 'temporal-ui') return this.webUi(container);
    if (name !== 'sandbox-gateway') return { ...container, environment };
    const book = new URL(environment['DATABASE_URL'] ?? '');
    book.hostname = this.make('postgres', BOOK).address;
    return { ...container, environment: { ...environment, DATABASE_URL: book.href } };
  }

  /** In its container the Web UI listens on every address. Here it gets the image's settings with one address. */
  private webUi(container: Container): Container {
    const { folder, programs } = this.options;
    const settings = readFileSync(join(programs, 'docker.yaml'), 'utf8');
    writeFileSync(join(folder, 'docker.yaml'), `${settings}\nhost: ${container.address}\n`);
    const list = `fetch('http://${container.address}:8080/api/v1/namespaces')`;
    return {
      ...container,
      environment: { ...container.environment, TEMPORAL_CONFIG_DIR: folder },
      healthcheck: ['node', '--eval', `${list}.then((r) => process.exit(Number(!r.ok)))`],
    };
  }
}
