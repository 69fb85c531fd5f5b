import { TestWorkflowEnvironment } from '@temporalio/testing';
import type { SdkServer } from './sdk-download.ts';

/** Makes the SDK download a server into a folder: starts the server, then stops it. */
const [server, downloadDir] = process.argv.slice(2) as [SdkServer, string];
const executable = { type: 'cached-download', downloadDir } as const;

const environment =
  server === 'dev-server'
    ? await TestWorkflowEnvironment.createLocal({ server: { executable } })
    : await TestWorkflowEnvironment.createTimeSkipping({ server: { executable } });
await environment.teardown();
process.exit(0);
