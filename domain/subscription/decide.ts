import { calendarDate } from './state.ts';
import type { OpenAttempt, SubscriptionState } from './state.ts';

/** What a subscription does next when nobody asks it anything. */
export type Step =
  /** Carry the open attempt to its outcome: send it, or ask the gateway about it. */
  | { do: 'settleAttempt' }
  | { do: 'expireCheckout' }
  /** The date `dueAt` of the calendar has come: charge its cycle. */
  | { do: 'chargeCycle'; dueAt: number }
  | { do: 'retryAutomatically' }
  | { do: 'liftCooldown' }
  /** ENDED with no outcome open: the workflow is over. */
  | { do: 'finish' }
  | Wait;

/** Nothing is due before `until`; null when only a command can change that. */
export interface Wait {
  do: 'wait';
  until: number | null;
  /** `real`: counted in real time even on a test clock, because a gateway is asked. */
  time: 'own' | 'real';
  reason: string;
}

/**
 * The next step at `now` (the subscription's own time) and `realNow`. Pure; one step at a time, in
 * the order in which things fell due. Rules: D-05, D-30, D-§4.
 */
export function decide(state: SubscriptionState, now: number, realNow: number): Step {
  const open = state.openAttempt;
  if (open) {
    return realNow >= open.lookupAt
      ? { do: 'settleAttempt' }
      : { do: 'wait', until: open.lookupAt, time: 'real', reason: waitReason(open) };
  }
  if (state.status === 'ENDED') return { do: 'finish' };

  const due = duties(state);
  const first = due.reduce<Duty | null>((a, b) => (a && a.at <= b.at ? a : b), null);
  if (!first) return { do: 'wait', until: null, time: 'own', reason: 'a command' };
  if (now < first.at) return { do: 'wait', until: first.at, time: 'own', reason: first.reason };
  return first.step;
}

function waitReason({ reviewReason }: OpenAttempt): string {
  return reviewReason === undefined ? 'ask the gateway again' : 'ask the gateway; a person is told';
}

/**
 * When the subscription next has something to record by itself, for its row: a sweep finds the ones
 * that should have moved and did not. An open attempt is due in real time. A cooldown that is over
 * moves nothing that is recorded.
 */
export function wakeAt(state: SubscriptionState): number | null {
  if (state.openAttempt) return state.openAttempt.lookupAt;
  if (state.status === 'ENDED') return null;
  const instants = duties(state)
    .filter((duty) => duty.step.do !== 'liftCooldown')
    .map((duty) => duty.at);
  return instants.length === 0 ? null : Math.min(...instants);
}

interface Duty {
  at: number;
  reason: string;
  step: Exclude<Step, Wait>;
}

function duties(state: SubscriptionState): Duty[] {
  const all: Duty[] = [];
  if (state.status === 'CREATED') {
    all.push({
      at: state.checkoutExpiresAt,
      reason: 'checkout expires',
      step: { do: 'expireCheckout' },
    });
  }
  if (state.status === 'TRIALING' || state.status === 'ACTIVE') {
    const dueAt = calendarDate(state, state.nextIndex);
    const cycle = `charge cycle ${state.cyclesCharged + 1}`;
    all.push({
      // The date stays what it is; only the charge comes a little later.
      at: dueAt + (state.jitterMs ?? 0),
      reason: state.status === 'TRIALING' ? `trial ends, ${cycle}` : cycle,
      step: { do: 'chargeCycle', dueAt },
    });
  }
  const retryAt = state.status === 'UNPAID' ? state.owed?.nextRetryAt : null;
  if (retryAt) {
    all.push({
      at: retryAt,
      reason: `retry cycle ${state.cyclesCharged + 1}`,
      step: { do: 'retryAutomatically' },
    });
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
