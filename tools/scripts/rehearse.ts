// npm run rehearse: starts every service of docker-compose.yml as a process of this machine, with the service's
// command, variables, health check and order; no container is started. Then kills each of them while subscriptions
// renew, runs three workers and the demo, and verifies all records. Exits with 1 if anything differs.

import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadEmbeddedConfig } from '../config.ts';
import { runCommand } from '../embedded/run-command.ts';
import { demoFile } from '../../cli/command-line/demo-file.ts';
import type { DemoFile } from '../../cli/command-line/demo-file.ts';
import { writeForOwner } from '../embedded/secrets.ts';
import { temporalCli } from '../embedded/temporal-cli.ts';
import { temporalClusterPrograms, temporalUi } from '../embedded/temporal-cluster.ts';
import { readServices } from '../rehearsal/composition.ts';
import { killEach } from '../rehearsal/kills.ts';
import { buildImage, linkPrograms } from '../rehearsal/machine.ts';
import { LOOPBACK, Rehearsal, secondsSince } from '../rehearsal/rehearsal.ts';
import type { Merchant } from '../rehearsal/rehearsal.ts';
import { restoreDrills } from '../rehearsal/restore.ts';
import { commandLine } from '../../cli/command-line/options.ts';
import { print, runScript } from '../../cli/command-line/terminal.ts';

const DEMO_WITHIN_MS = 300_000;

const { restore } = commandLine(
  'run rehearse',
  'Starts the services of docker-compose.yml without containers.',
)
  .option(
    '--restore',
    'restore the product, then Temporal, then both to a backup, in place of the kills',
  )
  .parse()
  .opts<{ restore?: true }>();

const startedAt = performance.now();
const say = (line: string): void => print(`${secondsSince(startedAt).padStart(7)} s  ${line}`);

await runScript(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'perennial-rehearsal-'));
  // Postgres may run as another account.
  chmodSync(folder, 0o755);
  const programs = join(folder, 'bin');
  const config = loadEmbeddedConfig();
  const { server, sqlTool } = await temporalClusterPrograms(config, say);
  const [, uiVersion = ''] = readServices()['temporal-ui']?.image.split(':') ?? [];
  const ui = await temporalUi(config.cacheDir, uiVersion, say);
  linkPrograms(programs, {
    'temporal-server': server,
    'temporal-sql-tool': sqlTool,
    temporal: await temporalCli(config, say),
    'temporal-ui': join(ui, 'server'),
    'docker.yaml': join(ui, 'docker.yaml'),
    node: process.execPath,
  });
  const image = await buildImage(join(folder, 'app'));
  const rehearsal = new Rehearsal({ image, folder, programs, say });
  process.once('SIGINT', () => void rehearsal.down().then(() => process.exit(130)));
  try {
    await rehearsal.start();
    const merchant = await rehearsal.createMerchant();
    if (restore) {
      await restoreDrills(rehearsal, merchant);
    } else {
      await killEach(rehearsal, merchant);
      await playDemo(rehearsal, merchant);
    }
  } catch (error) {
    print(`logs are in ${folder}`);
    throw error;
  } finally {
    await rehearsal.down();
  }
  rmSync(folder, { recursive: true });
  return 0;
});

async function playDemo(rehearsal: Rehearsal, merchant: Merchant): Promise<void> {
  const { folder, secrets } = rehearsal;
  await rehearsal.restart(['api', 'worker'], LOOPBACK);
  const demo: DemoFile = {
    ...merchant,
    databaseUrl: rehearsal.given('DATABASE_URL'),
    checkoutUrl: merchant.apiUrl,
    gatewayUrl: rehearsal.given('GATEWAY_URL'),
    gatewayKey: secrets.GATEWAY_KEY,
    temporalUiUrl: merchant.apiUrl,
    temporalAddress: rehearsal.given('TEMPORAL_ADDRESS'),
    temporalNamespace: rehearsal.given('TEMPORAL_NAMESPACE'),
  };
  writeForOwner(demoFile(folder), demo);
  await runCommand(process.execPath, ['--import', 'tsx', 'tools/scripts/demo.ts'], {
    timeoutMs: DEMO_WITHIN_MS,
    cwd: process.cwd(),
    environment: { DATA_DIR: folder },
  });
  say('npm run demo: everything is as expected');
  await rehearsal.expectRight();
}
