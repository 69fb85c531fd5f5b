import {
  ActivityFailure,
  CancellationScope,
  condition,
  continueAsNew,
  log,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { ActivityOptions, LocalActivityOptions } from '@temporalio/workflow';
import type { Activities } from '../../activities/index.ts';
import { backoffMs, lookupDelayMs, lookupsAfter, REVIEW_DELAY_MS } from '../../domain/delays.ts';
import { formatInstant } from '../../domain/calendar.ts';
import { subjectOf, tokenOf } from '../../domain/order.ts';
import type { OrderKind, OrderOutcome, OrderStep } from '../../domain/order.ts';
import { lateLookDelayMs } from '../../domain/review.ts';
import {
  INSIDE_WORKFLOW_TASK,
  localFirst,
  MONEY_MOVEMENT,
  siblingTaskQueue,
} from '../activity-calls.ts';
import type { ActivityFunction } from '../activity-calls.ts';
import { PAYER_PRIORITY } from '../messages.ts';
import { recheck } from './messages.ts';
import type { OrderInput, OrderResult } from './messages.ts';

const EVENTS_PER_RUN = 400;

/** By kind: the activity that does a step of the order, and the words for the step and the order in the Web UI. */
const STEPS = {
  payment: { activity: 'chargePayment', does: 'charge or settle', name: 'payment' },
  refund: { activity: 'refundPayment', does: 'send refund', name: 'refund' },
  setupMethod: {
    activity: 'saveSetupMethod',
    does: 'save the payment method of',
    name: 'setup session',
  },
  lateCharge: {
    activity: 'lookForLateCharge',
    does: 'look for a late charge of',
    name: 'late charge of',
  },
} as const satisfies Record<OrderKind, { activity: keyof Activities; does: string; name: string }>;

/**
 * Carries out one order: repeats its step until the order has an outcome. The step reads the order's row first, so a
 * repeat, here or in another run, charges, refunds or saves once.
 *
 * A recheck causes an additional step, which does not change the number or the times of the regular ones. A
 * cancellation request changes nothing: the outcome of a request that may have been sent must be found.
 */
export function carryOut<Kind extends OrderKind>(
  kind: Kind,
  { order, lookups: earlier }: OrderInput<Kind>,
): Promise<OrderResult<Kind>> {
  const subject = `${STEPS[kind].name} \`${subjectOf(order)}\``;
  const step = stepOf(kind, order);
  let isRechecked = false;
  setHandler(recheck, () => void (isRechecked = true), { description: 'Do the next step now.' });
  return CancellationScope.nonCancellable(async () => {
    let lookups = earlier;
    /** Time at which the next regular step is due. Earlier steps are additional. */
    let dueAt = 0;
    let failures = 0;
    for (;;) {
      isRechecked = false;
      const isEarly = now() < dueAt;
      setCurrentDetails(`**Under way**: ${subject} is being settled with the gateway.`);
      const outcome = await unlessFailed(() => step(now(), isEarly ? lookups - 1 : lookups));
      if (outcome && outcome.kind !== 'pending') {
        setCurrentDetails(`**Decided**: ${subject}: ${outcome.kind}.`);
        return { paymentToken: tokenOf(order), outcome } as OrderResult<Kind>;
      }
      failures = outcome ? 0 : failures + 1;
      const { continueAsNewSuggested, historyLength } = workflowInfo();
      const isFull = continueAsNewSuggested || historyLength >= EVENTS_PER_RUN;
      if (outcome && !isEarly) {
        dueAt = now() + delayMs(kind, outcome, lookups, subject);
        lookups = lookupsAfter(lookups, 'isUnsent' in outcome);
      }
      const waitMs = outcome ? Math.max(1, dueAt - now()) : backoffMs(failures, subject);
      setCurrentDetails(whileWaiting(subject, outcome, lookups, now() + waitMs));
      if (needsPerson(outcome)) log.warn('manual review needed', { subject });
      const summary = outcome ? 'ask the gateway again' : 'try again';
      await condition(() => isRechecked, waitMs, { summary });
      if (isFull) await continueAsNew({ order, lookups });
    }
  });
}

/** Returns the function that does one step of the order: the first as a local activity, unless that fails. */
function stepOf<Kind extends OrderKind>(kind: Kind, order: OrderInput<Kind>['order']) {
  const { activity, does } = STEPS[kind];
  const summary = `${does} ${subjectOf(order)}`;
  type Step<Options> = ActivityFunction<Options, OrderStep<Kind>, OrderOutcome<OrderKind>>;
  const local = proxyLocalActivities<Activities>(INSIDE_WORKFLOW_TASK)[activity];
  const queued = proxyActivities<Activities>({
    ...MONEY_MOVEMENT,
    taskQueue: siblingTaskQueue('charges'),
    priority: { priorityKey: PAYER_PRIORITY, fairnessKey: order.merchantId },
  })[activity];
  const run = localFirst(local as Step<LocalActivityOptions>, queued as Step<ActivityOptions>);
  return (nowAt: number, lookups: number) =>
    run(summary, { ...order, nowAt, lookups }, lookups > 0);
}

type Pending = Extract<OrderOutcome<OrderKind>, { kind: 'pending' }>;

function needsPerson(outcome: Pending | null): boolean {
  return outcome !== null && 'needsPerson' in outcome;
}

function delayMs(kind: OrderKind, outcome: Pending, lookups: number, subject: string): number {
  if (needsPerson(outcome)) return REVIEW_DELAY_MS;
  return kind === 'lateCharge' ? lateLookDelayMs(lookups) : lookupDelayMs(lookups, subject);
}

function whileWaiting(
  subject: string,
  outcome: Pending | null,
  lookups: number,
  untilAt: number,
): string {
  const at = formatInstant(untilAt);
  if (outcome === null) return `**Backoff**: a step of ${subject} failed; it is repeated at ${at}.`;
  if (needsPerson(outcome)) {
    return `**Manual review**: ${subject}, see \`npm run review -- list\` and \`npm run verify\`. Next look-up at ${at}.`;
  }
  if ('isUnsent' in outcome) {
    return `**Not sent**: ${subject} could not be sent to the gateway. Sent again at ${at}.`;
  }
  const state = 'isAccepted' in outcome ? 'Pending at the gateway' : 'Outcome unknown';
  return `**${state}**: ${subject}. Asked ${lookups} times; asked again at ${at}.`;
}

/** Null if the activity has used up its retries. Any other error is a bug and fails the workflow task. */
async function unlessFailed<T>(step: () => Promise<T>): Promise<T | null> {
  try {
    return await step();
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    log.warn('an activity used up its retries; it runs again after a backoff', {
      activity: error.activityType,
      reason: error.cause?.message ?? error.message,
    });
    return null;
  }
}

function now(): number {
  // oxlint-disable-next-line no-restricted-properties -- the sandbox's clock: workflow time
  return Date.now();
}
