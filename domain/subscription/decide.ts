import { formatAmount } from '../money.ts';
import { nextNotice } from './notices.ts';
import { latestChargeAt } from './charge-time.ts';
import { cancelAt, nextAmountMinor, nextDateAt, nextRetryAt, resumeAt } from './state.ts';
import type { OpenAttempt, SubscriptionState } from './state.ts';

export type Step =
  | { do: 'settleAttempt' }
  | { do: 'expireCheckout' }
  /** Charge the cycle of the calendar date `dueAt`. */
  | { do: 'chargeCycle'; dueAt: number }
  | { do: 'retryAutomatically' }
  | { do: 'liftCooldown' }
  | { do: 'endPeriod' }
  | { do: 'giveNotice' }
  | { do: 'endPause'; at: number }
  /** Complete the workflow: the subscription is ENDED and has no open attempt. */
  | { do: 'finish' }
  | Wait;

/** A due step that opens an attempt. */
export type ChargeStep = Extract<Step, { do: 'chargeCycle' | 'retryAutomatically' }>;

export function isChargeStep(step: Step): step is ChargeStep {
  return step.do === 'chargeCycle' || step.do === 'retryAutomatically';
}

/** Nothing is due before `until`. If `until` is null, only a command makes something due. */
export interface Wait {
  do: 'wait';
  until: number | null;
  /** `real`: `until` is real time even on a test clock, because the gateway uses real time. */
  time: 'own' | 'real';
  reason: string;
}

/** Returns the next step, at the subscription's own time `now`. If several are due, the one that was due first. */
export function decide(state: SubscriptionState, now: number, realNow: number): Step {
  const open = state.openAttempt;
  if (open) {
    return realNow >= open.lookupAt
      ? { do: 'settleAttempt' }
      : { do: 'wait', until: open.lookupAt, time: 'real', reason: waitReason(open) };
  }
  if (state.status === 'ENDED') return { do: 'finish' };

  const first = dueSteps(state).reduce<DueStep | null>((a, b) => (a && a.at <= b.at ? a : b), null);
  if (!first) return { do: 'wait', until: null, time: 'own', reason: 'a command' };
  if (now < first.at) return { do: 'wait', until: first.at, time: 'own', reason: first.reason };
  return first.step;
}

function waitReason({ reviewReason, unsentReason }: OpenAttempt): string {
  if (unsentReason !== undefined) return 'send the charge again';
  return reviewReason === undefined
    ? 'ask the gateway again'
    : 'in manual review; ask the gateway again';
}

/** Returns when the next step that writes the row is due, for the sweep; real time with an open attempt. */
export function wakeAt(state: SubscriptionState): number | null {
  if (state.openAttempt) return state.openAttempt.lookupAt;
  if (state.status === 'ENDED') return null;
  const instants = dueSteps(state)
    .filter(({ step }) => step.do !== 'liftCooldown')
    .map(({ at }) => at);
  return instants.length === 0 ? null : Math.min(...instants);
}

interface DueStep {
  at: number;
  reason: string;
  step: Exclude<Step, Wait>;
}

function dueSteps(state: SubscriptionState): DueStep[] {
  const all: DueStep[] = [];
  if (state.status === 'CREATED') {
    all.push({
      at: state.checkoutExpiresAt,
      reason: 'checkout expires',
      step: { do: 'expireCheckout' },
    });
  }
  const endAt = cancelAt(state);
  if (endAt !== null) {
    all.push({ at: endAt, reason: 'cancelled, the period ends', step: { do: 'endPeriod' } });
  }
  const pauseEndAt = resumeAt(state);
  if (pauseEndAt !== null) {
    const step = { do: 'endPause', at: pauseEndAt } as const;
    all.push({ at: pauseEndAt, reason: 'the pause ends', step });
  }
  const dueAt = nextDateAt(state);
  if (dueAt !== null) {
    const cycle = `charge ${nextCycle(state)}`;
    all.push({
      // A delay of the charge does not move the billing date.
      at: latestChargeAt(state, dueAt),
      reason: state.status === 'TRIALING' ? `trial ends, ${cycle}` : cycle,
      step: { do: 'chargeCycle', dueAt },
    });
  }
  const retryAt = endAt === null ? nextRetryAt(state) : null;
  if (retryAt !== null) {
    all.push({
      at: retryAt,
      reason: `retry ${nextCycle(state)}`,
      step: { do: 'retryAutomatically' },
    });
  }
  const notice = nextNotice(state);
  if (notice) {
    const reason = `notice ${notice.notice} of ${nextCycle(state)}`;
    all.push({ at: notice.dueAt, reason, step: { do: 'giveNotice' } });
  }
  if (state.cooldownUntilAt !== null) {
    all.push({
      at: state.cooldownUntilAt,
      reason: 'manual retry allowed again',
      step: { do: 'liftCooldown' },
    });
  }
  return all;
}

/** Returns, for example, `cycle 4 (19.99 USD)`. */
function nextCycle(state: SubscriptionState): string {
  const amount = formatAmount(nextAmountMinor(state), state.terms.currency);
  return `cycle ${state.cyclesCharged + 1} (${amount})`;
}
