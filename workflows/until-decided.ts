import {
  ActivityFailure,
  CancellationScope,
  log,
  setCurrentDetails,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import { formatInstant } from '../domain/calendar.ts';
import { lookupDelayMs } from '../domain/lookup-delays.ts';

/** How long to wait after an activity gave up. */
const HOLD_MS = 10_000;
/** A run this long hands over to a fresh one. */
const EVENTS_PER_RUN = 400;

/** Something that is asked until it is decided. */
export interface Pursuit<Outcome> {
  /** In words, for the Web UI: `the payment`. */
  what: string;
  /** Goes one step on. Running it again is safe. */
  ask(nowAt: number): Promise<Outcome>;
  /** How often it was asked in vain before this run. */
  lookups: number;
  continueAsNew(lookups: number): Promise<never>;
}

/**
 * Asks until the answer is something else than `pending`, with the ladder of waits between as timers.
 * An activity that gave up is run again after a while; nothing but an answer ends it. A cancellation
 * request changes nothing: what may have been sent has to be found out. Design §4.
 */
export function untilDecided<Outcome extends { kind: string }>(
  pursuit: Pursuit<Outcome>,
): Promise<Exclude<Outcome, { kind: 'pending' }>> {
  return CancellationScope.nonCancellable(async () => {
    let { lookups } = pursuit;
    for (;;) {
      setCurrentDetails(`**Under way**: ${pursuit.what} is being settled with the gateway.`);
      const outcome = await askOnce(pursuit);
      if (outcome && outcome.kind !== 'pending') {
        setCurrentDetails(`**Decided**: ${pursuit.what} ${outcome.kind}.`);
        return outcome as Exclude<Outcome, { kind: 'pending' }>;
      }
      const { continueAsNewSuggested, historyLength } = workflowInfo();
      const isFull = continueAsNewSuggested || historyLength >= EVENTS_PER_RUN;
      const delayMs = outcome ? lookupDelayMs(lookups) : HOLD_MS;
      const nextAt = formatInstant(now() + delayMs);
      if (outcome) {
        lookups += 1;
        setCurrentDetails(
          `**Not known yet**: what became of ${pursuit.what}. Asked ${lookups} times; the gateway is asked again at ${nextAt}.`,
        );
        await sleep(delayMs, { summary: 'ask the gateway again' });
      } else {
        setCurrentDetails(`**Held up**: a step of ${pursuit.what} failed; again at ${nextAt}.`);
        await sleep(delayMs, { summary: 'try again' });
      }
      if (isFull) await pursuit.continueAsNew(lookups);
    }
  });
}

/** Null when the activity gave up; any other error is a bug, which fails the task. */
async function askOnce<Outcome>(pursuit: Pursuit<Outcome>): Promise<Outcome | null> {
  try {
    return await pursuit.ask(now());
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    log.warn('an activity gave up, trying again soon', {
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
