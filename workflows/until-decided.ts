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
const HOLD_MS = 10_000;
/** A run this long hands over to a fresh one. */
const EVENTS_PER_RUN = 400;

/** Something that is asked until it is decided. */
export interface Pursuit<Outcome> {
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
export function untilDecided<Outcome extends { kind: string }>(
  pursuit: Pursuit<Outcome>,
): Promise<Exclude<Outcome, { kind: 'pending' }>> {
  let isPoked = false;
  setHandler(poke, () => void (isPoked = true), { description: 'Ask again now' });
  return CancellationScope.nonCancellable(async () => {
    let { lookups } = pursuit;
    for (;;) {
      isPoked = false;
      setCurrentDetails(`**Under way**: ${pursuit.what} is being settled with the gateway.`);
      const outcome = await askOnce(pursuit, lookups);
      if (outcome && outcome.kind !== 'pending') {
        setCurrentDetails(`**Decided**: ${pursuit.what} ${outcome.kind}.`);
        return outcome as Exclude<Outcome, { kind: 'pending' }>;
      }
      const { continueAsNewSuggested, historyLength } = workflowInfo();
      const isFull = continueAsNewSuggested || historyLength >= EVENTS_PER_RUN;
      const delayMs = outcome ? delayAfter(pursuit, outcome, lookups) : HOLD_MS;
      const nextAt = formatInstant(now() + delayMs);
      const needsPerson = outcome !== null && isForPerson(outcome);
      if (outcome) lookups += 1;
      setCurrentDetails(
        needsPerson
          ? `**A person has to settle ${pursuit.what}**: \`npm run review -- list\`. Asked about again at ${nextAt}.`
          : outcome
            ? `**Not known yet**: what became of ${pursuit.what}. Asked ${lookups} times; the gateway is asked again at ${nextAt}.`
            : `**Held up**: a step of ${pursuit.what} failed; again at ${nextAt}.`,
      );
      if (needsPerson) log.warn('a person has to settle it', { what: pursuit.what });
      const summary = outcome ? 'ask the gateway again' : 'try again';
      await condition(() => isPoked, delayMs, { summary });
      if (isFull) await pursuit.continueAsNew(lookups);
    }
  });
}

function isForPerson(outcome: { kind: string }): boolean {
  return (outcome as Undecided).needsPerson === true;
}

function delayAfter<Outcome extends { kind: string }>(
  pursuit: Pursuit<Outcome>,
  outcome: Outcome,
  lookups: number,
): number {
  if (isForPerson(outcome)) return REVIEW_DELAY_MS;
  return pursuit.delayMs ? pursuit.delayMs(lookups) : lookupDelayMs(lookups);
}

/** Null when the activity gave up; any other error is a bug, which fails the task. */
async function askOnce<Outcome>(
  pursuit: Pursuit<Outcome>,
  lookups: number,
): Promise<Outcome | null> {
  try {
    return await pursuit.ask(now(), lookups);
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
