import type { CardLimits } from '../../domain/card-limits.ts';
import { jitterOf } from '../../domain/delays.ts';
import type { RetryPlan } from '../../domain/retry-plan.ts';
import { initialJitter } from '../../domain/subscription/state.ts';
import type { SubscriptionState } from '../../domain/subscription/state.ts';
import { simulate } from '../../domain/subscription/simulate.ts';
import type { Script } from '../../domain/subscription/simulate.ts';

export interface Settings {
  readonly retryPlan: RetryPlan;
  readonly cardLimits?: CardLimits;
  /** Null: no delay, because how a wave is spread depends on what else is due. Absent: each keeps its own. */
  readonly jitterMs?: number | null;
}

export interface Period {
  readonly fromAt: number;
  readonly untilAt: number;
  /** Share of all attempts that are declined, from 0 to 1. The intent and the number of an attempt decide it. */
  readonly declineRate: number;
}

export type ForecastCharge = ReturnType<typeof forecast>[number];

const SHARES = 1_000_000;

/** Returns every charge of the period under `settings`, by the rules of the workflow. */
export function forecast(
  states: readonly SubscriptionState[],
  { retryPlan, jitterMs, cardLimits }: Settings,
  { fromAt, untilAt, declineRate }: Period,
) {
  const declineOf: Script['declineOf'] = ({ attemptNumber }, { intentId }) =>
    jitterOf(`${intentId}#${attemptNumber}`, SHARES - 1) < declineRate * SHARES
      ? 'insufficient_funds'
      : null;
  return states.flatMap((state) => {
    const { subscriptionId } = state;
    const { jitterFor: _, ...own } = state;
    const jitter = jitterMs === undefined ? {} : initialJitter(state, jitterMs);
    const start = jitterMs === undefined ? state : { ...own, ...jitter };
    const script = {
      outcomes: [],
      commands: [],
      declineOf,
      untilAt,
      ...(cardLimits && { cardLimits }),
    };
    return simulate(start, fromAt, retryPlan, script).steps.flatMap(({ at, charge }) => {
      if (!charge) return [];
      const { cycleNumber, attemptNumber, amountMinor, errorCode } = charge;
      const { currency } = state.terms;
      const isPaid = errorCode === null;
      return [{ subscriptionId, cycleNumber, attemptNumber, at, amountMinor, currency, isPaid }];
    });
  });
}

/** An attempt under both settings. Null: it is not made. */
export interface Compared {
  readonly before: ForecastCharge | null;
  readonly after: ForecastCharge | null;
}

/** Pairs the attempts of both forecasts, in the order of their dates. */
export function compare(
  before: readonly ForecastCharge[],
  after: readonly ForecastCharge[],
): Compared[] {
  const keyOf = (charge: ForecastCharge): string =>
    `${charge.subscriptionId} ${charge.cycleNumber} ${charge.attemptNumber}`;
  const left = new Map(after.map((charge) => [keyOf(charge), charge]));
  const pairs: Compared[] = before.map((charge) => {
    const key = keyOf(charge);
    const same = left.get(key) ?? null;
    left.delete(key);
    return { before: charge, after: same };
  });
  for (const charge of left.values()) pairs.push({ before: null, after: charge });
  const atOf = ({ before: first, after: second }: Compared): number => (first ?? second)?.at ?? 0;
  return pairs.toSorted((a, b) => atOf(a) - atOf(b));
}

export interface Day {
  readonly date: string;
  charges: number;
  declined: number;
  /** By currency. */
  readonly paidMinor: Record<string, number>;
}

/** Sums by days of UTC, or by other periods that begin at `startOf`. */
export function sumBy(
  charges: readonly ForecastCharge[],
  startOf: (at: number) => number,
): Map<string, Day> {
  const days = new Map<string, Day>();
  for (const { at, amountMinor, currency, isPaid } of charges) {
    const date = new Date(startOf(at)).toISOString().slice(0, 10);
    const day = days.get(date) ?? { date, charges: 0, declined: 0, paidMinor: {} };
    day.charges += 1;
    if (isPaid) day.paidMinor[currency] = (day.paidMinor[currency] ?? 0) + amountMinor;
    else day.declined += 1;
    days.set(date, day);
  }
  return days;
}
