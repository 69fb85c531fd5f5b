import { fileURLToPath } from 'node:url';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import type { temporal } from '@temporalio/proto';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import type { InjectedSinks } from '@temporalio/worker';
import { bundleWorkflows } from '../../runtime/workflow-bundle.ts';
import type { Captured, CaptureSinks } from './capture.ts';

export interface Replayed {
  readonly name: string;
  readonly events: readonly temporal.api.history.v1.IHistoryEvent[];
  readonly captured: readonly Captured[];
  /** Why the replay stopped; null if this build can go on with the run. */
  readonly error: string | null;
}

const CAPTURE = fileURLToPath(new URL('capture.ts', import.meta.url));

/** Prepares the replay of histories on the workflows of this build. Call it once in a process. */
export async function createReplay() {
  const logging = { forward: {}, filter: { core: 'ERROR', other: 'ERROR' } } as const;
  const logger = new DefaultLogger('ERROR');
  Runtime.install({ logger, shutdownSignals: [], telemetryOptions: { logging } });
  const workflowBundle = await bundleWorkflows([CAPTURE]);
  return (histories: Iterable<readonly [name: string, json: unknown]>) =>
    replay(workflowBundle, histories);
}

/** One worker replays all, one after the other: each worker reads the source map of the bundle and keeps it. */
async function* replay(
  workflowBundle: { code: string },
  histories: Iterable<readonly [name: string, json: unknown]>,
): AsyncGenerator<Replayed> {
  let run = { name: '', events: [] as Replayed['events'], captured: [] as Captured[] };
  const sinks: InjectedSinks<CaptureSinks> = {
    capture: { add: { fn: (_, item) => void run.captured.push(item), callDuringReplay: true } },
  };
  function* opened() {
    for (const [name, json] of histories) {
      const history = historyFromJSON(json);
      run = { name, events: history.events ?? [], captured: [] };
      yield { workflowId: name, history };
    }
  }
  for await (const { error } of Worker.runReplayHistories({ workflowBundle, sinks }, opened())) {
    yield { ...run, error: error ? error.message : null };
  }
}
