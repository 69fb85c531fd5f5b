import {
  ActivityFailure,
  CancellationScope,
  condition,
  log,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { backoffMs } from '../../domain/backoff.ts';
import { formatInstant } from '../../domain/calendar.ts';
import { lookupDelayMs, REVIEW_DELAY_MS } from '../../domain/lookup-delays.ts';
import { recheck } from './messages.ts';

/** A run with this many events of history continues as new. */
const EVENTS_PER_RUN = 400;

/** An order or a look-up that is repeated until it has an outcome. */
export interface Poll<Outcome> {
  /** The name of the order in the Web UI: `payment in_…`. */
  subject: string;
  /** Runs the activity that sends the order or looks up its outcome. A repeat is safe. */
  ask(nowAt: number, lookups: number): Promise<Outcome>;
  /** Number of calls of `ask`, in earlier runs, that found no outcome. */
  lookups: number;
  continueAsNew(lookups: number): Promise<never>;
  /** The delay in ms before the next call of `ask`, after `lookups` calls without an outcome. Default: `lookupDelayMs`. */
  delayMs?(lookups: number): number;
}

/** The result of `ask` if there is no outcome yet. */
interface Undecided {
  kind: 'pending';
  /**
   * The attempt or refund is in REVIEW and waits for a manual decision. Meanwhile `ask` is called once a day.
   */
  needsPerson?: true;
  /** The gateway has the refund and decides it later. */
  isAccepted?: true;
}

/**
 * Calls `ask` until its result is not `pending`, and returns that result. Sleeps between two calls: for the
 * poll's delay, or for `backoffMs` if the activity has used up its retries.
 *
 * A recheck ends the sleep and causes an additional call, which is not counted in `lookups` and does not move
 * the next regular call. A cancellation request does not end the poll, because the gateway may have received a
 * request whose outcome must be found out.
 */
export function pollUntilSettled<Outcome extends { kind: string }>(
  poll: Poll<Outcome>,
): Promise<Exclude<Outcome, { kind: 'pending' }>> {
  let isRechecked = false;
  setHandler(recheck, () => void (isRechecked = true), { description: 'Do the next step now.' });
  return CancellationScope.nonCancellable(async () => {
    let { lookups } = poll;
    /** Time at which the next regular call is due. Earlier calls are additional. */
    let dueAt = 0;
    let failures = 0;
    for (;;) {
      isRechecked = false;
      const isEarly = now() < dueAt;
      setCurrentDetails(`**Under way**: ${poll.subject} is being settled with the gateway.`);
      const outcome = await askOnce(poll, isEarly ? lookups - 1 : lookups);
      if (outcome && outcome.kind !== 'pending') {
        setCurrentDetails(`**Decided**: ${poll.subject}: ${outcome.kind}.`);
        return outcome as Exclude<Outcome, { kind: 'pending' }>;
      }
      failures = outcome ? 0 : failures + 1;
      const { continueAsNewSuggested, historyLength } = workflowInfo();
      const isFull = continueAsNewSuggested || historyLength >= EVENTS_PER_RUN;
      const needsPerson = outcome !== null && isForPerson(outcome);
      if (outcome && !isEarly) {
        dueAt = now() + delayAfter(poll, outcome, lookups);
        lookups += 1;
      }
      const delayMs = outcome ? Math.max(1, dueAt - now()) : backoffMs(failures, poll.subject);
      const nextAt = formatInstant(now() + delayMs);
      setCurrentDetails(
        needsPerson
          ? `**Manual review**: ${poll.subject}, see \`npm run review -- list\`. Next look-up at ${nextAt}.`
          : outcome
            ? `**${isAccepted(outcome) ? 'Pending at the gateway' : 'Outcome unknown'}**: ${poll.subject}. ` +
              `Asked ${lookups} times; asked again at ${nextAt}.`
            : `**Backoff**: a step of ${poll.subject} failed; it is repeated at ${nextAt}.`,
      );
      if (needsPerson) log.warn('manual review needed', { subject: poll.subject });
      const summary = outcome ? 'ask the gateway again' : 'try again';
      await condition(() => isRechecked, delayMs, { summary });
      if (isFull) await poll.continueAsNew(lookups);
    }
  });
}

function isForPerson(outcome: { kind: string }): boolean {
  return (outcome as Undecided).needsPerson === true;
}

function isAccepted(outcome: { kind: string }): boolean {
  return (outcome as Undecided).isAccepted === true;
}

function delayAfter<Outcome extends { kind: string }>(
  poll: Poll<Outcome>,
  outcome: Outcome,
  lookups: number,
): number {
  if (isForPerson(outcome)) return REVIEW_DELAY_MS;
  return poll.delayMs ? poll.delayMs(lookups) : lookupDelayMs(lookups);
}

/**
 * Calls `ask`. Returns null if the activity has used up its retries. Any other error is a bug and fails the
 * workflow task.
 */
async function askOnce<Outcome>(poll: Poll<Outcome>, lookups: number): Promise<Outcome | null> {
  try {
    return await poll.ask(now(), lookups);
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
