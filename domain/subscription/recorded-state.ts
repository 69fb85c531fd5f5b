import { INSTANT_MAX } from './entry-schema.ts';
import { memberOf } from './read-command.ts';
import { STATE } from './state-schema.ts';
import { calendarDate } from './state.ts';
import type { SubscriptionState } from './state.ts';

export class UnreadableStateError extends Error {
  override readonly name = 'UnreadableStateError';
}

/** @throws UnreadableStateError if a step of the subscription could fail on the recorded state. */
export function readState(value: unknown): SubscriptionState {
  const problem = stateProblem(value);
  if (problem === null) return value as SubscriptionState; // every field was checked
  const id = memberOf(value, 'subscriptionId');
  const subject = typeof id === 'string' ? id : 'a subscription';
  throw new UnreadableStateError(`the recorded state of ${subject} cannot be read: ${problem}`);
}

/** Returns why a recorded state cannot be read, from the path of the first wrong field. Ignores unknown fields. */
export function stateProblem(value: unknown): string | null {
  const { data, error } = STATE.safeParse(value);
  if (data) return togetherProblem(data);
  const [first] = error.issues;
  return `${pathText(first?.path ?? [])} ${first?.message}`;
}

/** For example `latest.plan.delaysMs[2]`. */
function pathText([first = 'it', ...rest]: readonly PropertyKey[]): string {
  const texts = rest.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`));
  return `${String(first)}${texts.join('')}`;
}

/** Checks the conditions between fields. Each field has already been checked alone. */
function togetherProblem(state: SubscriptionState): string | null {
  const { status, anchorAt, currentPeriodEndAt, owed, openAttempt, cyclesCharged } = state;
  if (openAttempt && !owed) return 'owed must be an object while an attempt is open';
  if (owed && owed.cycleNumber !== cyclesCharged + 1) {
    return 'owed.cycleNumber must be 1 more than cyclesCharged';
  }
  if (status !== 'TRIALING' && status !== 'ACTIVE') return null;
  if (anchorAt === null) return `anchorAt must be epoch milliseconds in ${status}`;
  if (currentPeriodEndAt === null) {
    return `currentPeriodEndAt must be epoch milliseconds in ${status}`;
  }
  return calendarDate(state, state.nextIndex) <= INSTANT_MAX
    ? null
    : 'nextIndex must be the index of a date';
}
