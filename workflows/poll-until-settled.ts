import {
  ActivityFailure,
  CancellationScope,
  condition,
  log,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { formatInstant } from '../domain/calendar.ts';
import { lookupDelayMs, REVIEW_DELAY_MS } from '../domain/lookup-delays.ts';
import { poke } from './payment/messages.ts';

/** How long to wait after an activity gave up. */
const BACKOFF_MS = 10_000;
/** A run this long hands over to a fresh one. */
const EVENTS_PER_RUN = 400;

/** Something that is asked until it is decided. */
export interface Poll<Outcome> {
  /** In words, for the Web UI: `the payment`. */
  what: string;
  /** Goes one step on. Running it again is safe. */
  ask(nowAt: number, lookups: number): Promise<Outcome>;
  /** How often it was asked in vain before this run. */
  lookups: number;
  continueAsNew(lookups: number): Promise<never>;
  /** The wait in ms after `lookups` questions in vain; left out: the ladder. */
  delayMs?(lookups: number): number;
}

/** What an activity answers that has no outcome yet. */
interface Undecided {
  kind: 'pending';
  /** Asking leads nowhere: a person is told, and it is asked about once a day. */
  needsPerson?: true;
}

/**
 * Asks until the answer is something else than `pending`, with the ladder of waits between as timers.
 * An activity that gave up is run again after a while; nothing but an answer ends it. A cancellation
 * request changes nothing: what may have been sent has to be found out. Design §4.
 */
export function pollUntilSettled<Outcome extends { kind: string }>(
  poll: Poll<Outcome>,
): Promise<Exclude<Outcome, { kind: 'pending' }>> {
  let isPoked = false;
  setHandler(poke, () => void (isPoked = true), { description: 'Ask again now' });
  return CancellationScope.nonCancellable(async () => {
    let { lookups } = poll;
    for (;;) {
      isPoked = false;
      setCurrentDetails(`**Under way**: ${poll.what} is being settled with the gateway.`);
      const outcome = await askOnce(poll, lookups);
      if (outcome && outcome.kind !== 'pending') {
        setCurrentDetails(`**Decided**: ${poll.what} ${outcome.kind}.`);
        return outcome as Exclude<Outcome, { kind: 'pending' }>;
      }
      const { continueAsNewSuggested, historyLength } = workflowInfo();
      const isFull = continueAsNewSuggested || historyLength >= EVENTS_PER_RUN;
      const delayMs = outcome ? delayAfter(poll, outcome, lookups) : BACKOFF_MS;
      const nextAt = formatInstant(now() + delayMs);
      const needsPerson = outcome !== null && isForPerson(outcome);
      if (outcome) lookups += 1;
      setCurrentDetails(
        needsPerson
          ? `**A person has to settle ${poll.what}**: \`npm run review -- list\`. Asked about again at ${nextAt}.`
          : outcome
            ? `**Not known yet**: what became of ${poll.what}. Asked ${lookups} times; the gateway is asked again at ${nextAt}.`
            : `**Held up**: a step of ${poll.what} failed; again at ${nextAt}.`,
      );
      if (needsPerson) log.warn('a person has to settle it', { what: poll.what });
      const summary = outcome ? 'ask the gateway again' : 'try again';
      await condition(() => isPoked, delayMs, { summary });
      if (isFull) await poll.continueAsNew(lookups);
    }
  });
}

function isForPerson(outcome: { kind: string }): boolean {
  return (outcome as Undecided).needsPerson === true;
}

function delayAfter<Outcome extends { kind: string }>(
  poll: Poll<Outcome>,
  outcome: Outcome,
  lookups: number,
): number {
  if (isForPerson(outcome)) return REVIEW_DELAY_MS;
  return poll.delayMs ? poll.delayMs(lookups) : lookupDelayMs(lookups);
}

/** Null when the activity gave up; any other error is a bug, which fails the task. */
async function askOnce<Outcome>(poll: Poll<Outcome>, lookups: number): Promise<Outcome | null> {
  try {
    return await poll.ask(now(), lookups);
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
