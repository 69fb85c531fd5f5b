import { defineConfig } from 'vitest/config';

/**
 * One project for each folder of tests. The projects in FAST start no server. The others share the servers of
 * `test/support/global-setup.ts`. A file that needs a database, a task queue prefix or a time-skipping server gets
 * its own.
 */
const FAST = ['unit', 'architecture', 'replay'] as const;
const ON_SERVERS = ['contract', 'workflows', 'api', 'integration', 'scenarios', 'harm'] as const;

/** One more than CI's two cores: most files on servers wait for a timer or a process most of the time. */
const FILES_AT_ONCE = 3;

/** Time-skipping servers and browsers need a core each. They run after the others, two at once. */
const BUSY: readonly string[] = ['workflows', 'scenarios'];

export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: FILES_AT_ONCE,
    // Files that follow each other in a process share its imports, 0.3 to 2 s of CPU for each file.
    isolate: false,
    // Longest wait in ms for a test process to close.
    teardownTimeout: 20_000,
    reporters: ['default', './test/support/slowest-files.ts'],
    // As in test/support/eventually.ts: a limit for tests that fail.
    expect: { poll: { timeout: 60_000, interval: 20 } },
    projects: [
      ...FAST.map((name) => ({
        extends: true as const,
        test: {
          name,
          include: [`test/${name}/**/*.test.{ts,tsx}`],
          testTimeout: 180_000,
          hookTimeout: 180_000,
        },
      })),
      ...ON_SERVERS.map((name) => ({
        extends: true as const,
        test: {
          name,
          include: [`test/${name}/**/*.test.{ts,tsx}`],
          globalSetup: ['test/support/global-setup.ts'],
          ...(BUSY.includes(name) ? { maxWorkers: 2, sequence: { groupOrder: 1 } } : {}),
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      })),
    ],
  },
});
