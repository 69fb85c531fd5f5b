import { defineConfig } from 'vitest/config';

/**
 * One project per folder of `test/`. The fast ones start nothing. The others share the servers of
 * `test/support/global-setup.ts`; each of their files has a database, a task queue prefix and, for
 * months of life, a time-skipping server of its own.
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
    // Not the tests' own time limits: a stuck await should fail, a slow machine should not.
    teardownTimeout: 20_000,
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
