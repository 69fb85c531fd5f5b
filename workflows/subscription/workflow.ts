import { CancellationScope, condition, upsertSearchAttributes } from '@temporalio/workflow';
import { takeFirstCommand } from './commands.ts';
import { Deliveries } from './deliveries.ts';
import { onCancellationRequest, registerHandlers } from './handlers.ts';
import { attributesOf, resultOf } from './messages.ts';
import type { SubscriptionInput, SubscriptionResult } from './messages.ts';
import { interruptionOf, plan } from './plan.ts';
import { Run } from './run.ts';
import { RunFacts } from './run-facts.ts';
import { sleep } from './sleep.ts';
import { Steps } from './steps.ts';
import { handOver } from './successor.ts';

/**
 * Runs one subscription from its creation to its end. `plan` decides what the run does next, and this loop
 * does it.
 *
 * Handlers only put commands into an inbox. Only this loop changes the subscription, one change at a time. A
 * renewal is one workflow task: the timer fires, the charge runs as a local activity, the next timer starts.
 * Runs that an older release started, without local activities (`isLocalFirst` is absent), use task queues for every
 * activity and continue as new after every change.
 *
 * Rules: D-§4, D-05, D-30, D-31, D-32, D-60.
 */
export async function subscription(input: SubscriptionInput): Promise<SubscriptionResult> {
  const run = new Run(input);
  registerHandlers(run);
  onCancellationRequest(run);
  const deliveries = new Deliveries(run);
  const steps = new Steps(run, deliveries);
  const facts = new RunFacts(run, deliveries);

  return CancellationScope.nonCancellable(async () => {
    if (input.deliver) await deliveries.begin();
    for (;;) {
      const next = plan(facts);
      switch (next.kind) {
        case 'resync':
          await steps.resync();
          break;
        case 'command':
          await takeFirstCommand(run, steps);
          run.isChanged = true;
          break;
        case 'advanceClock':
          run.clock.stepTo(next.until);
          break;
        case 'step':
          await steps.take(next.step);
          run.isChanged = true;
          break;
        case 'reportClock':
          await steps.reportClockReached();
          break;
        case 'drain':
          await condition(() => interruptionOf(facts) !== null || facts.isDrained);
          break;
        case 'finish':
          upsertSearchAttributes(attributesOf(run.state));
          return resultOf(run.state);
        case 'continueAsNew':
          await handOver(run, facts);
          break;
        case 'sleep':
          await sleep(run, facts, next.step);
      }
    }
  });
}
