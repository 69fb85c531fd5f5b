// Loaded before everything else into a process that runs workflows (`node --import`), and by that into
// each of its workflow threads. There the SDK takes a stack trace for every promise that workflow code
// makes, which is a third to a half of the thread's CPU. All they serve is the "Call Stack" of the Web
// UI: it answers then that stack traces are not enabled. A process without this file is only slower.
// JavaScript, because tsx is not ready yet when a thread loads it.

import v8 from 'node:v8';
import { isMainThread } from 'node:worker_threads';

if (!isMainThread) {
  // The SDK knows runtimes that cannot do this, and does without. Node's own hooks, which carry the
  // SDK's context from await to await, do not come this way.
  Object.assign(v8, {
    promiseHooks: {
      ...v8.promiseHooks,
      createHook: () => {
        throw new Error('stack traces of promises are off in workflow threads');
      },
    },
  });
}
