import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { migrate } from '../../../../db/migrate.ts';
import { loadEmbeddedConfig } from '../../../config.ts';
import { freePort } from '../../../embedded/ports.ts';
import { ensureDatabase, postgresService, postgresUrl } from '../../../embedded/postgres.ts';
import { supervise } from '../../../embedded/services.ts';
import type { GatewayChoice } from '../../../../cli/command-line/options.ts';
import { grouped, print, styled } from '../../../../cli/command-line/terminal.ts';
import { fuzzCrashes } from './lives.ts';

export interface CrashOptions {
  readonly lives: number;
  readonly seed: number;
  readonly gateway: GatewayChoice;
}

/** `npm run fuzz -- crashes`, on a Postgres of its own. Returns 1 after a violation, which it prints with its steps. */
export async function runCrashes({ lives, seed, gateway }: CrashOptions): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'perennial-fuzz-'));
  const settings = {
    dataFolder: join(folder, 'postgres'),
    logFile: join(folder, 'postgres.log'),
    port: await freePort(),
    password: 'fuzz',
    isDurable: false,
  };
  const quiet = () => undefined;
  const server = supervise(postgresService(settings, quiet), { report: quiet });
  const stop = async (): Promise<void> => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void stop().then(() => process.exit(130)));
  }
  const startedAt = performance.now();
  const seconds = () => ((performance.now() - startedAt) / 1_000).toFixed(0);
  try {
    await server.start();
    const databaseUrl = postgresUrl(settings, 'fuzz');
    await ensureDatabase(databaseUrl);
    await migrate(databaseUrl, { applicationName: 'fuzz', report: quiet });
    const { cacheDir } = loadEmbeddedConfig();
    const report = (done: number) => print(`· ${grouped(done)} lives, ${seconds()} s`);
    const places = { databaseUrl, cacheDir, gateway };
    const {
      tally,
      lives: lived,
      violation,
    } = await fuzzCrashes({ ...places, lives, seed, report });
    print(`${grouped(lived)} lives at the gateway ${gateway}, seed ${seed}, ${seconds()} s:`);
    for (const [name, count] of Object.entries(tally)) print(`  ${grouped(count)} ${name}`);
    if (!violation) {
      print(styled('green', 'No record contradicts another.'));
      return 0;
    }
    print(styled('red', `life ${violation.life} of seed ${seed}:`));
    for (const line of [...violation.problems, '', ...violation.steps]) print(`  ${line}`);
    return 1;
  } finally {
    await stop();
  }
}
