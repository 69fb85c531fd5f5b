import { defineConfig } from 'vitest/config';

/**
 * One project per folder of `test/`. The fast ones start nothing. The others share the servers of
 * `test/support/global-setup.ts` and run one file at a time: they compete for the same two cores,
 * and a test clock or a time-skipping server is not to be shared.
 */
const FAST = ['unit', 'architecture', 'replay'] as const;
const ON_SERVERS = ['contract', 'workflows', 'api', 'integration', 'scenarios', 'harm'] as const;

export default defineConfig({
  test: {
    pool: 'forks',
    // Not the tests' own time limits: a stuck await should fail, a slow machine should not.
    teardownTimeout: 20_000,
    projects: [
      ...FAST.map((name) => ({
        test: {
          name,
          include: [`test/${name}/**/*.test.{ts,tsx}`],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      })),
      ...ON_SERVERS.map((name) => ({
        test: {
          name,
          include: [`test/${name}/**/*.test.{ts,tsx}`],
          globalSetup: ['test/support/global-setup.ts'],
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      })),
    ],
  },
});
