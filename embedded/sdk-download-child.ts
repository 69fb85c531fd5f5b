import { TestWorkflowEnvironment } from '@temporalio/testing';
import type { SdkServer } from './sdk-download.ts';

/** Arguments: the server, and the folder for the download. Starts the server, then stops it. */
const [server, downloadDir] = process.argv.slice(2) as [SdkServer, string];
const executable = { type: 'cached-download', downloadDir } as const;

const environment =
  server === 'dev-server'
    ? await TestWorkflowEnvironment.createLocal({ server: { executable } })
    : await TestWorkflowEnvironment.createTimeSkipping({ server: { executable } });
await environment.teardown();
process.exit(0);
