import { minuteText } from '../../../cli/command-line/terminal.ts';
import type { ReceivedWebhook } from '../client/webhook-receiver.ts';

/** Stands for the time of an event of a payment method, which is the real time: a method has no test clock. */
export const REAL_TIME = 'in real time';

interface EventFields {
  readonly eventType: string;
  readonly eventTime: number;
  readonly status: string;
  readonly amount?: number;
  readonly currency?: string;
  readonly cycleNumber?: number;
  readonly remainingCycleCount?: number;
  readonly nextPaymentDate?: number | null;
  readonly currentPeriodEnd?: number | null;
  readonly card?: { readonly lastFourDigit: string } | null;
  readonly errorCode?: string | null;
  readonly disputedAmount?: number;
  readonly disputeStatus?: string;
  readonly disputeReason?: string;
  readonly failedAmount?: number;
}

/** The fields of an event in one line. `until`: the end of the paid period, if the next payment is at another time. */
export function lineOf(event: ReceivedWebhook['event']): string {
  const body = event as unknown as EventFields;
  const { nextPaymentDate: next, currentPeriodEnd: end } = body;
  const time = body.eventType.startsWith('setup_method.') ? REAL_TIME : timeText(body.eventTime);
  const money = (minor: number): string => `${(minor / 100).toFixed(2)} ${body.currency}`;
  const parts = [
    `${time} ${body.eventType} ${body.status}` +
      (body.amount === undefined ? '' : ` ${money(body.amount)}`),
    body.cycleNumber && `cycle ${body.cycleNumber}`,
    body.remainingCycleCount !== undefined && `${body.remainingCycleCount} left`,
    next && `next ${timeText(next)}`,
    end && end !== next && `until ${timeText(end)}`,
    body.card && `card ${body.card.lastFourDigit}`,
    body.errorCode,
    body.disputedAmount &&
      `${body.disputeStatus} dispute of ${money(body.disputedAmount)}: ${body.disputeReason}`,
    body.failedAmount && `${money(body.failedAmount)} not refunded`,
  ];
  return parts.filter(Boolean).join(', ');
}

/** Exact to the millisecond. */
function timeText(at: number): string {
  return at % 60_000 === 0 ? minuteText(at) : new Date(at).toISOString();
}

interface Renewal {
  readonly at: string;
  readonly cycle: number;
  readonly next: string;
  readonly amount?: string;
  readonly card?: string;
}

/** The lines of the three events of a payment that makes its subscription active. */
export function activatedLines(
  at: string,
  cycle: number,
  next: string,
  { amount = '19.99 USD', card = '4242' } = {},
): string[] {
  const left = 12 - cycle;
  return [
    `${at} intent.success SUCCESS ${amount}, card ${card}`,
    `${at} subscription.cycle_charged ACTIVE ${amount}, cycle ${cycle}, ${left} left, next ${next}`,
    `${at} subscription.active ACTIVE ${amount}, ${left} left, next ${next}`,
  ];
}

/** The lines of the three events of a renewal that is paid at its date. */
export function renewalLines(renewal: Renewal): string[] {
  const { at, cycle, next, amount = '19.99 USD', card = '4242' } = renewal;
  const left = 12 - cycle;
  return [
    `${at} intent.created CREATED ${amount}`,
    `${at} intent.success SUCCESS ${amount}, card ${card}`,
    `${at} subscription.cycle_charged ACTIVE ${amount}, cycle ${cycle}, ${left} left, next ${next}`,
  ];
}
