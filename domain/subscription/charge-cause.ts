import { cycleAt, formatInstant } from '../calendar.ts';
import type { IntervalUnit } from '../calendar.ts';
import type { AttemptTrigger } from '../payment-intent.ts';
import { nextAutomaticAttemptAt } from '../retry-plan.ts';
import type { RetryPlan } from '../retry-plan.ts';
import { askedForBy } from './actor.ts';
import type { Actor, Orderer } from './actor.ts';

/** Why an attempt on a cycle was opened: the rule, and the facts from which it followed. Stored with the attempt. */
export type ChargeCause =
  /** The date is `anchorAt` plus `index` times `intervalCount` intervals, unless no payment had set an anchor. */
  | {
      rule: 'due_date';
      dueAt: number;
      anchorAt: number;
      index: number;
      interval: IntervalUnit;
      intervalCount: number;
    }
  /** Retry number `retry` of the plan `delaysMs`, counted from the automatic attempt at `previousAt`. */
  | { rule: 'retry_plan'; plannedAt: number; retry: number; delaysMs: number[]; previousAt: number }
  /** A command or a new payment method had set the date of the next attempt. */
  | { rule: 'set_date'; plannedAt: number }
  | { rule: 'command'; commandId: string; actor: Orderer }
  | { rule: 'payer' };

interface Dates {
  anchorAt: number | null;
  nextIndex: number;
  terms: { interval: IntervalUnit; intervalCount: number };
}

interface Owed {
  retryPlan: RetryPlan | null;
  retriesUsed: number;
  automaticAttemptsAt: readonly number[];
  nextRetryAt: number | null;
}

interface Start {
  trigger: AttemptTrigger;
  commandId: string | null;
  actor?: Orderer | undefined;
}

/** Returns why the next attempt is opened on the cycle `owed`, from the state before the attempt. */
export function causeOf(
  { anchorAt, nextIndex, terms }: Dates,
  owed: Owed,
  { trigger, commandId, actor }: Start,
): ChargeCause {
  if (trigger === 'scheduled' && anchorAt !== null) {
    const { interval, intervalCount } = terms;
    // After an unpause, the owed cycle has another date than its payment intent.
    const dueAt = cycleAt(anchorAt, interval, intervalCount, nextIndex);
    return { rule: 'due_date', dueAt, anchorAt, index: nextIndex, interval, intervalCount };
  }
  if (trigger === 'automatic_retry') return retryCause(owed);
  if (trigger === 'manual_retry' && commandId !== null) {
    return { rule: 'command', commandId, actor: actor ?? 'merchant' };
  }
  return { rule: 'payer' };
}

function retryCause({
  retryPlan,
  retriesUsed,
  automaticAttemptsAt,
  nextRetryAt,
}: Owed): ChargeCause {
  const plannedAt = nextRetryAt ?? 0;
  const previousAt = automaticAttemptsAt.at(-1);
  const isPlanned =
    retryPlan !== null &&
    previousAt !== undefined &&
    nextAutomaticAttemptAt(retryPlan, retriesUsed - 1, automaticAttemptsAt) === plannedAt;
  if (!isPlanned) return { rule: 'set_date', plannedAt };
  const { delaysMs } = retryPlan;
  return { rule: 'retry_plan', plannedAt, retry: retriesUsed, delaysMs, previousAt };
}

export function actorOfCause(cause: ChargeCause): Actor {
  switch (cause.rule) {
    case 'due_date':
      return 'schedule';
    case 'retry_plan':
    case 'set_date':
      return 'retry_plan';
    case 'command':
      return cause.actor;
    case 'payer':
      return 'payer';
  }
}

/** Also true of a declined attempt. */
export const PAYER_REASONS = {
  checkout: 'the payer gave a card in the checkout',
  new_method: 'the payer gave another payment method',
  authentication: 'the bank asked the payer to confirm it',
};

/** Returns the cause in one sentence, with the arithmetic of its date. */
export function causeText(cause: ChargeCause, trigger: AttemptTrigger): string {
  switch (cause.rule) {
    case 'due_date': {
      const { dueAt, anchorAt, index, interval, intervalCount } = cause;
      if (index === 0) return `its date had come: ${formatInstant(dueAt)}, date 0 of its calendar`;
      const units = `${index * intervalCount} ${interval.toLowerCase()}${index * intervalCount === 1 ? '' : 's'}`;
      return `its date had come: ${formatInstant(anchorAt)} + ${units} = ${formatInstant(dueAt)}`;
    }
    case 'retry_plan': {
      const { retry, delaysMs, previousAt, plannedAt } = cause;
      return (
        `retry ${retry} of ${delaysMs.length} of the retry plan: ` +
        `${formatInstant(previousAt)} + ${(delaysMs[retry - 1] ?? 0) / 3_600_000} h = ${formatInstant(plannedAt)}`
      );
    }
    case 'set_date':
      return `its next attempt had been set to ${formatInstant(cause.plannedAt)}`;
    case 'command':
      return `${askedForBy(cause.actor)}, by the command ${cause.commandId}`;
    case 'payer': {
      const reasons: Partial<Record<AttemptTrigger, string>> = PAYER_REASONS;
      return reasons[trigger] ?? 'the payer asked for it';
    }
  }
}
