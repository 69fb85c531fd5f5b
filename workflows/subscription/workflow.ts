import { CancellationScope, condition, upsertSearchAttributes } from '@temporalio/workflow';
import { registerHandlers, takeFirstCommand } from './handlers.ts';
import { attributesOf, resultOf } from './messages.ts';
import type { SubscriptionInput, SubscriptionResult } from './messages.ts';
import { interruptionOf, plan } from './plan.ts';
import { Run } from './run.ts';
import { sleep } from './sleep.ts';
import { Steps } from './steps.ts';
import { handOver } from './successor.ts';

/**
 * Runs one subscription from its creation to its end. Handlers only put commands into an inbox; only this loop changes
 * the subscription, as `plan` decides, one change at a time.
 */
export async function subscription(input: SubscriptionInput): Promise<SubscriptionResult> {
  const run = new Run(input);
  registerHandlers(run);
  const steps = new Steps(run);

  return CancellationScope.nonCancellable(async () => {
    if (input.deliver) await steps.deliverEarlierEvents();
    for (;;) {
      const next = plan(run);
      switch (next.kind) {
        case 'resync':
          await steps.resync();
          break;
        case 'command':
          await takeFirstCommand(run, steps);
          break;
        case 'advanceClock':
          run.clock.stepTo(next.until);
          break;
        case 'step':
          await steps.take(next.step);
          break;
        case 'reportClock':
          await steps.reportClockReached();
          break;
        case 'drain':
          await condition(() => interruptionOf(run) !== null || run.isDrained);
          break;
        case 'finish':
          upsertSearchAttributes(attributesOf(run.state));
          return resultOf(run.state);
        case 'continueAsNew':
          await handOver(run);
          break;
        case 'sleep':
          await sleep(run, next.step);
      }
    }
  });
}
