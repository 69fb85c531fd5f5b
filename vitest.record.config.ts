import { defineConfig } from 'vitest/config';

/** `npm run record-histories`: records on real servers the paths that test/replay/histories lacks. */
export default defineConfig({
  test: {
    name: 'record',
    include: ['test/replay/*.record.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
