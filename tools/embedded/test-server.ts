import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { childEnvironment } from '../../runtime/environment.ts';
import type { EmbeddedConfig } from '../config.ts';
import { cachedFolder } from './cache.ts';
import { findProgram } from './find-program.ts';
import { copyJars } from './maven.ts';
import { freePort, isFree } from './ports.ts';
import { withStillWorking } from './progress.ts';
import type { Report } from './progress.ts';
import { downloadWithSdk, sdkProgram } from './sdk-download.ts';

type TestServerConfig = Pick<EmbeddedConfig, 'testServerPath' | 'cacheDir'>;

/** Older versions lose the memo at continue-as-new, and do not suggest continue-as-new at 4,096 events. */
const TEST_SERVER_VERSION = '1.38.0';

const SLF4J_VERSION = '1.7.36';

const PROGRAM = 'temporal-test-server';
const mavenEntry = `${PROGRAM}-${TEST_SERVER_VERSION}-archived`;

/** From TEMPORAL_TEST_SERVER_PATH, the cache, the SDK's download or Maven. Throws ComponentMissingError. */
export async function temporalTestServer(
  { testServerPath, cacheDir }: TestServerConfig,
  report: Report,
): Promise<string> {
  return findProgram({
    given: testServerPath,
    variable: 'TEMPORAL_TEST_SERVER_PATH',
    cached: [join(cacheDir, mavenEntry, PROGRAM), sdkProgram('time-skipping', cacheDir)],
    ways: [
      () => downloadWithSdk('time-skipping', cacheDir, report),
      () => fromMaven(cacheDir, report),
    ],
    advice: [
      'No time-skipping Temporal test server found. Do one of these:',
      '  - set TEMPORAL_TEST_SERVER_PATH to its path;',
      '  - give this machine access to the download server of the Temporal SDK;',
      '  - install Java 11 or newer and Maven, which can download it.',
    ],
  });
}

async function fromMaven(cacheDir: string, report: Report): Promise<string> {
  const folder = await cachedFolder(cacheDir, mavenEntry, async (building) => {
    report('download failed; getting the time-skipping test server once with Maven (about 15 s)');
    await withStillWorking(report, 'getting the test server', async () => {
      await copyJars(join(building, 'lib'), [
        `io.temporal:temporal-test-server:${TEST_SERVER_VERSION}`,
        `org.slf4j:slf4j-nop:${SLF4J_VERSION}`,
      ]);
      await archiveClasses(building);
    });
    const wrapper = join(building, PROGRAM);
    await writeFile(wrapper, WRAPPER);
    await chmod(wrapper, 0o755);
  });
  return join(folder, PROGRAM);
}

const JAVA_FLAGS = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-cp', 'lib/*'];
const JAVA_CLASS = 'io.temporal.testserver.TestServer';
const ARCHIVE = 'classes.jsa';

/** `exec`: the SDK kills the process that it started. The class archive makes the JVM start within its limit of 5 s. */
const WRAPPER = `#!/bin/sh
cd "$(dirname "$0")" &&
exec java -XX:SharedArchiveFile=${ARCHIVE} ${JAVA_FLAGS.map((flag) => `'${flag}'`).join(' ')} ${JAVA_CLASS} "$@"
`;

const ARCHIVE_WITHIN_MS = 60_000;

/** Makes the JVM write the archive of loaded classes. Java before 13 refuses the flag and starts without. */
async function archiveClasses(folder: string): Promise<void> {
  const port = await freePort();
  const args = [`-XX:ArchiveClassesAtExit=${ARCHIVE}`, ...JAVA_FLAGS, JAVA_CLASS, String(port)];
  const server = spawn('java', args, { cwd: folder, stdio: 'ignore', env: childEnvironment({}) });
  const closed = once(server, 'close');
  const giveUpAt = performance.now() + ARCHIVE_WITHIN_MS;
  while (server.exitCode === null && (await isFree('127.0.0.1', port))) {
    if (performance.now() > giveUpAt) break;
    await sleep(100);
  }
  server.kill('SIGTERM');
  const isClosed = await Promise.race([
    closed.then(() => true),
    sleep(ARCHIVE_WITHIN_MS, false, { ref: false }),
  ]);
  if (!isClosed) server.kill('SIGKILL');
}
