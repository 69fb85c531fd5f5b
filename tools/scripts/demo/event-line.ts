import { minuteText } from '../../../cli/command-line/terminal.ts';
import type { ReceivedWebhook } from '../client/webhook-receiver.ts';

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
}

/** The fields of an event in one line. `until`: the end of the paid period, if the next payment is at another time. */
export function lineOf(event: ReceivedWebhook['event']): string {
  const body = event as unknown as EventFields;
  const { nextPaymentDate: next, currentPeriodEnd: end } = body;
  const money = (minor: number): string => `${(minor / 100).toFixed(2)} ${body.currency}`;
  const parts = [
    `${timeText(body.eventTime)} ${body.eventType} ${body.status}` +
      (body.amount === undefined ? '' : ` ${money(body.amount)}`),
    body.cycleNumber && `cycle ${body.cycleNumber}`,
    body.remainingCycleCount !== undefined && `${body.remainingCycleCount} left`,
    next && `next ${timeText(next)}`,
    end && end !== next && `until ${timeText(end)}`,
    body.card && `card ${body.card.lastFourDigit}`,
    body.errorCode,
  ];
  return parts.filter(Boolean).join(', ');
}

/** Exact to the millisecond. */
function timeText(at: number): string {
  return at % 60_000 === 0 ? minuteText(at) : new Date(at).toISOString();
}

/** The lines of the three events of a payment that makes its subscription active. */
export function activatedLines(at: string, cycle: number, next: string): string[] {
  const left = 12 - cycle;
  return [
    `${at} intent.success SUCCESS 19.99 USD, card 4242`,
    `${at} subscription.cycle_charged ACTIVE 19.99 USD, cycle ${cycle}, ${left} left, next ${next}`,
    `${at} subscription.active ACTIVE 19.99 USD, ${left} left, next ${next}`,
  ];
}

/** The lines of the three events of a renewal that is paid at its date. */
export function renewalLines(at: string, cycle: number, next: string): string[] {
  const [paid = '', charged = ''] = activatedLines(at, cycle, next);
  return [`${at} intent.created CREATED 19.99 USD`, paid, charged];
}
