// Loaded first (`node --import`) into a process that runs workflows, and into each of its workflow
// threads. In those threads it turns off two things that cost about half of the thread's CPU time.
// Without this file a process works, only slower.
//
// - The SDK takes a stack trace for every promise of workflow code, which only the "Call Stack" tab of the
//   Web UI uses. With this file the tab answers that stack traces are not enabled.
// - The SDK limits each of about six calls of workflow code in an activation to 5 s, for which Node starts
//   an operating-system thread each time. Without the limit an endless loop in workflow code, which has none,
//   would keep its workflow thread until the process ends.
//
// The file is JavaScript, because tsx is not ready when a thread loads it.

import v8 from 'node:v8';
import { Script } from 'node:vm';
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
  const { runInContext } = Script.prototype;
  Script.prototype.runInContext = function runWithoutLimit(context, options) {
    return runInContext.call(this, context, { ...options, timeout: undefined });
  };
}
