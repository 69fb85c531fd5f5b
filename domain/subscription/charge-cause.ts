import { cycleAt, formatInstant } from '../calendar.ts';
import { limitText } from '../card-limits.ts';
import type { IntervalUnit } from '../calendar.ts';
import { invariant } from '../errors.ts';
import type { AttemptTrigger } from '../payment-intent.ts';
import type { RetryPlan } from '../retry-plan.ts';
import { askedForBy, ordererName } from './actor.ts';
import type { Actor, Orderer } from './actor.ts';
import type { ChargeCause, DateSetter } from './entry-schema.ts';

export type { ChargeCause } from './entry-schema.ts';

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
  dateSetBy?: DateSetter | undefined;
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

function retryCause(owed: Owed): ChargeCause {
  const { retryPlan, retriesUsed, automaticAttemptsAt, nextRetryAt, dateSetBy: setBy } = owed;
  const plannedAt = nextRetryAt ?? 0;
  if (setBy) return { rule: 'set_date', plannedAt, setBy };
  const previousAt = automaticAttemptsAt.at(-1);
  invariant(retryPlan !== null && previousAt !== undefined, 'a plan has set the date of the retry');
  const { delaysMs } = retryPlan;
  return { rule: 'retry_plan', plannedAt, retry: retriesUsed, delaysMs, previousAt };
}

/** Returns the date from which the attempt followed; null if it followed from no date. */
export function dateOfCause(cause: ChargeCause): number | null {
  if (cause.rule === 'due_date') return cause.dueAt;
  return 'plannedAt' in cause ? cause.plannedAt : null;
}

export function actorOfCause(cause: ChargeCause): Actor {
  switch (cause.rule) {
    case 'due_date':
      return 'schedule';
    case 'retry_plan':
      return 'retry_plan';
    case 'set_date':
      return cause.setBy.actor;
    case 'command':
      return cause.actor;
    case 'payer':
      return 'payer';
    case 'adopted':
      return 'operator';
  }
}

export const ADOPTED = "an operator copied it from the gateway's book";

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
    case 'set_date': {
      const { plannedAt, setBy } = cause;
      const date = formatInstant(plannedAt);
      switch (setBy.actor) {
        case 'payer':
          return `${PAYER_REASONS.new_method}; its next attempt was set to ${date}`;
        case 'gateway':
          return setBy.said === 'not_before'
            ? `the bank had advised no other try before ${date}`
            : `the card had new details from ${date} on`;
        case 'schedule':
          return `it had to wait until ${date}: ${limitText(setBy)}`;
        case 'retry_plan':
          return `the retry plan had set its next attempt to ${date}, before the payer gave another payment method`;
        case 'merchant':
        case 'operator':
          return `${ordererName(setBy.actor)} had set its next attempt to ${date}, by the command ${setBy.commandId}`;
      }
    }
    case 'command':
      return `${askedForBy(cause.actor)}, by the command ${cause.commandId}`;
    case 'payer': {
      const reasons: Partial<Record<AttemptTrigger, string>> = PAYER_REASONS;
      return reasons[trigger] ?? 'the payer asked for it';
    }
    case 'adopted':
      return ADOPTED;
  }
}
