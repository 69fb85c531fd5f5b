import { Client, Connection } from '@temporalio/client';
import { CLIENT_RETRIES } from '../../temporal/client.ts';
import { temporal } from '@temporalio/proto';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { DefaultLogger, NativeConnection, Runtime } from '@temporalio/worker';
import { inject } from 'vitest';
import { dataConverter } from '../../runtime/payload-digest.ts';
import { SEARCH_ATTRIBUTES } from '../../tools/embedded/temporal-server.ts';

const { INDEXED_VALUE_TYPE_KEYWORD: KEYWORD } = temporal.api.enums.v1.IndexedValueType;

let isRuntimeInstalled = false;

/** Installs the SDK's runtime once. Must run before the process connects to a server or starts a worker. */
function installRuntime(): void {
  if (isRuntimeInstalled) return;
  Runtime.install({ logger: new DefaultLogger('ERROR'), shutdownSignals: [] });
  isRuntimeInstalled = true;
}

/**
 * Maximum number of starts. The SDK waits 5 s for a test server. On a busy machine a start may take longer
 * and is repeated.
 */
const STARTS_MAX = 4;

async function createTimeSkipping(): Promise<TestWorkflowEnvironment> {
  for (let start = 1; ; start += 1) {
    try {
      return await TestWorkflowEnvironment.createTimeSkipping({
        server: { executable: { type: 'existing-path', path: inject('testServerPath') } },
        client: { dataConverter },
      });
    } catch (error) {
      const isLate = error instanceof Error && error.message.includes('did not start within');
      if (!isLate || start === STARTS_MAX) throw error;
    }
  }
}

/**
 * Starts a Temporal test server that skips time while workflows only wait.
 *
 * A test must send no command or signal while a timer of the workflow is about to end. This server refuses a workflow
 * task that cancels a timer which ended during the task, and the workflow then hangs. A task lasts as long as its local
 * activities. A real Temporal server accepts such a task.
 */
export async function startTimeSkippingServer(): Promise<TestWorkflowEnvironment> {
  installRuntime();
  const env = await createTimeSkipping();
  await env.connection.operatorService.addSearchAttributes({
    namespace: 'default',
    searchAttributes: Object.fromEntries(
      Object.keys(SEARCH_ATTRIBUTES).map((name) => [name, KEYWORD]),
    ),
  });
  return env;
}

export interface TemporalPlace {
  client: Client;
  nativeConnection: NativeConnection;
}

/** Connects to the test run's Temporal dev server, which runs in real time. */
export async function connectDevServer(): Promise<TemporalPlace & { teardown(): Promise<void> }> {
  installRuntime();
  const address = inject('temporalAddress');
  const connection = await Connection.connect({ address, interceptors: CLIENT_RETRIES });
  const nativeConnection = await NativeConnection.connect({ address });
  const client = new Client({ connection, dataConverter });
  const teardown = async () => {
    await connection.close();
    await nativeConnection.close();
  };
  return { client, nativeConnection, teardown };
}
