import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { onDevServer as test } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import { startOurProcess } from '../support/our-process.ts';
import { payCheckout } from '../support/pay-checkout.ts';

const JANUARY = Date.parse('2027-01-31T12:00:00Z');

test('one signal to all hands sleeping runs to the current build, and to the former one after a rollback, and every cycle is charged once', async ({
  env,
  onTestFinished,
}) => {
  await env.stopWorkers();
  const deploymentName = `perennial-${randomUUID()}`;
  const { workflowService } = env.client;
  const start = async (buildId: string): Promise<void> => {
    const worker = await startOurProcess('worker.ts', {
      ...env.variables,
      WORKER_DEPLOYMENT_NAME: deploymentName,
      BUILD_ID: buildId,
    });
    onTestFinished(() => worker.stop());
  };
  /** What `temporal worker deployment set-current-version` does. */
  const makeCurrent = (buildId: string) =>
    eventually(() =>
      workflowService.setWorkerDeploymentCurrentVersion({
        namespace: 'default',
        deploymentName,
        buildId,
      }),
    );
  /** What `temporal workflow signal --query` does. */
  const signalAll = () =>
    workflowService.startBatchOperation({
      namespace: 'default',
      jobId: randomUUID(),
      reason: 'deploy',
      visibilityQuery: `MerchantId = '${env.merchantId}' AND ExecutionStatus = 'Running'`,
      signalOperation: { signal: 'recheck' },
    });
  const buildOf = async ({ subscriptionId }: SubscriptionRef) => {
    const { raw } = await env.client.workflow
      .getHandle(subscriptionWorkflowId(subscriptionId))
      .describe();
    return raw.workflowExecutionInfo?.versioningInfo?.deploymentVersion?.buildId;
  };

  await start('one');
  await makeCurrent('one');
  const clock = await env.createClock(JANUARY);
  const refs: SubscriptionRef[] = [];
  for (const _ of ['first', 'second']) {
    const ref = await env.create({ createdAt: JANUARY, testClockId: clock });
    await payCheckout(env, ref);
    refs.push(ref);
  }
  const builds = () => Promise.all(refs.map(buildOf));
  await expect.poll(builds).toEqual(['one', 'one']);

  await start('two');
  await makeCurrent('two');
  expect(await builds()).toEqual(['one', 'one']);
  await signalAll();
  await expect.poll(builds).toEqual(['two', 'two']);
  await env.advance(clock, '2027-02-28T12:00:00Z');

  await makeCurrent('one');
  await signalAll();
  await expect.poll(builds).toEqual(['one', 'one']);
  await env.advance(clock, '2027-03-31T12:00:00Z');

  for (const ref of refs) {
    expect(await env.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 3 });
    expect((await env.book(ref)).map(({ amountMinor }) => amountMinor)).toEqual([
      1_999, 1_999, 1_999,
    ]);
  }
});
