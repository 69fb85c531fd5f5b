// Loaded first (`node --import`) into a process that runs workflows, and into each of its workflow
// threads. In those threads the SDK takes a stack trace for every promise of workflow code, which costs
// about a third of the thread's CPU time. Only the "Call Stack" tab of the Web UI uses these traces.
// With this file the tab answers that stack traces are not enabled. Without this file a process works,
// only slower.
//
// The file is JavaScript, because tsx is not ready when a thread loads it.

import v8 from 'node:v8';
import { isMainThread } from 'node:worker_threads';

if (!isMainThread) {
  // The SDK supports runtimes without promise hooks, so an error here is safe. The SDK uses `createHook` only
  // for the stack traces. Node's own hooks, which carry the SDK's context across awaits, do not use `createHook`.
  Object.assign(v8, {
    promiseHooks: {
      ...v8.promiseHooks,
      createHook: () => {
        throw new Error('stack traces of promises are off in workflow threads');
      },
    },
  });
}
