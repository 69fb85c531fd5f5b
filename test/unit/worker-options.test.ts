import { expect, test } from 'vitest';
import { workerOptionsOf, workersOf } from '../../runtime/worker-options.ts';

const options = (queue: 'billing' | 'checkout') =>
  workerOptionsOf(queue, {
    taskQueuePrefix: '',
    activities: {},
    activityInterceptor: () => ({}),
    workflowBundle: { codePath: 'workflow-bundle.js' },
    deployment: { deploymentName: 'perennial', buildId: '1' },
    workers: workersOf(queue),
  });

test('the workers of billing in a process share 40 tasks and 12 polls, and each caches 1,500 runs', () => {
  const workers = workersOf('billing');
  const {
    maxConcurrentWorkflowTaskExecutions,
    maxConcurrentWorkflowTaskPolls,
    maxCachedWorkflows,
  } = options('billing');
  expect(maxConcurrentWorkflowTaskExecutions).toBe(Math.ceil(40 / workers));
  expect(maxConcurrentWorkflowTaskPolls).toBe(Math.ceil(12 / workers));
  expect(maxCachedWorkflows).toBe(1_500);
  expect(options('checkout')).toMatchObject({
    maxConcurrentWorkflowTaskExecutions: 40,
    maxCachedWorkflows: 1_500,
  });
});
