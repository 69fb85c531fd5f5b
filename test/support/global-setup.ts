import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { migrate } from '../../db/migrate.ts';
import { chromium } from '../../tools/embedded/chromium.ts';
import { freePort } from '../../tools/embedded/ports.ts';
import { bundlePrograms } from '../../tools/embedded/program-bundle.ts';
import { ensureDatabase, postgresService, postgresUrl } from '../../tools/embedded/postgres.ts';
import { supervise } from '../../tools/embedded/services.ts';
import type { Service, SupervisedService } from '../../tools/embedded/services.ts';
import { ComponentMissingError } from '../../tools/embedded/find-program.ts';
import { temporalCli } from '../../tools/embedded/temporal-cli.ts';
import { temporalAddress, temporalService } from '../../tools/embedded/temporal-server.ts';
import { temporalTestServer } from '../../tools/embedded/test-server.ts';
import { loadEmbeddedConfig } from '../../tools/config.ts';
import { writeWorkflowBundle } from '../../runtime/workflow-bundle.ts';
import type { ChromiumFound } from './chromium.ts';

/** The values that every test with servers can `inject`. */
export interface TestServers {
  /** Postgres server, as the URL of its administrative database. */
  readonly postgresUrl: string;
  /** `host:port` of a Temporal dev server in memory, with our search attributes. */
  readonly temporalAddress: string;
  /** Path of Temporal's time-skipping test server, for an executable of the SDK's type `existing-path`. */
  readonly testServerPath: string;
  /** The workflow bundle, for `workflowBundle: { codePath }`. */
  readonly workflowBundlePath: string;
  /** Folder of the bundled programs, for `bundledProgram`. */
  readonly programFolder: string;
}

declare module 'vitest' {
  interface ProvidedContext extends TestServers {
    /** Only in projects whose tests open pages in a browser. */
    readonly chromium: ChromiumFound;
  }
}

export const TEMPLATE_DATABASE = 'perennial_template';

/**
 * The servers that the projects of one test run share. The first `setup` starts these servers, and the last
 * teardown stops them.
 */
interface SharedServers {
  users: number;
  readonly started: Promise<{ servers: TestServers; stop: () => Promise<void> }>;
}

const shared = globalThis as { perennialTestServers?: SharedServers | undefined };

/** Vitest calls this function once for each project with test files. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const state = (shared.perennialTestServers ??= { users: 0, started: startServers() });
  state.users += 1;
  const { servers, stop } = await state.started;
  project.provide('postgresUrl', servers.postgresUrl);
  project.provide('temporalAddress', servers.temporalAddress);
  project.provide('testServerPath', servers.testServerPath);
  project.provide('workflowBundlePath', servers.workflowBundlePath);
  project.provide('programFolder', servers.programFolder);
  if (PROJECTS_IN_A_BROWSER.includes(project.name))
    project.provide('chromium', await findChromium());
  return async () => {
    state.users -= 1;
    if (state.users > 0) return;
    shared.perennialTestServers = undefined;
    await stop();
  };
}

const PROJECTS_IN_A_BROWSER = ['scenarios'];

async function findChromium(): Promise<ChromiumFound> {
  try {
    return { path: await chromium(loadEmbeddedConfig(), say) };
  } catch (error) {
    if (!(error instanceof ComponentMissingError)) throw error;
    say(`${error.message}\nTests in a browser are skipped.`);
    return { missing: error.message };
  }
}

const say = (line: string): void => console.log(`test servers: ${line}`);

async function startServers(): Promise<{ servers: TestServers; stop: () => Promise<void> }> {
  const config = loadEmbeddedConfig();
  const folder = await mkdtemp(join(tmpdir(), 'perennial-test-'));
  const running: SupervisedService[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(running.map((service) => service.stop()));
    await rm(folder, { recursive: true, force: true });
  };
  try {
    // Binaries come first and one at a time, because their preparation may use every core for minutes.
    const cli = await temporalCli(config, say);
    const testServerPath = await temporalTestServer(config, say);
    const programFolder = join(folder, 'programs');
    const [url, address, workflowBundlePath] = await Promise.all([
      startPostgres(folder, running),
      startTemporal(folder, cli, running),
      bundleWorkflows(folder),
      bundlePrograms(programFolder),
    ]);
    return {
      servers: {
        postgresUrl: url,
        temporalAddress: address,
        testServerPath,
        workflowBundlePath,
        programFolder,
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function run(service: Service, running: SupervisedService[]): Promise<void> {
  const supervised = supervise(service, { report: say });
  running.push(supervised);
  await supervised.start();
}

async function startPostgres(folder: string, running: SupervisedService[]): Promise<string> {
  const settings = {
    dataFolder: join(folder, 'postgres'),
    logFile: join(folder, 'postgres.log'),
    port: await freePort(),
    password: 'test',
    isDurable: false,
  };
  await run(
    postgresService(settings, () => undefined),
    running,
  );
  const template = postgresUrl(settings, TEMPLATE_DATABASE);
  await ensureDatabase(template);
  await migrate(template, { applicationName: 'test-servers', report: say });
  return postgresUrl(settings, 'postgres');
}

async function startTemporal(
  folder: string,
  cli: string,
  running: SupervisedService[],
): Promise<string> {
  const settings = {
    cli,
    host: '127.0.0.1',
    port: await freePort(),
    namespace: 'default',
    logFile: join(folder, 'temporal.log'),
  };
  await run(temporalService(settings), running);
  return temporalAddress(settings);
}

async function bundleWorkflows(folder: string): Promise<string> {
  const file = join(folder, 'workflow-bundle.js');
  await writeWorkflowBundle(file);
  return file;
}
