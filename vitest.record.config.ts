import { defineConfig } from 'vitest/config';

/** `npm run record-histories`: makes the files of test/replay/histories anew, on real servers. */
export default defineConfig({
  test: {
    name: 'record',
    include: ['test/replay/histories.record.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
