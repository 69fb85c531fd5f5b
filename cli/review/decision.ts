import type { Decision } from '../../db/repositories/payments/reviews.ts';
import { DECLINES, isDeclineCode } from '../../domain/declines.ts';
import type { ReviewOutcome } from '../../domain/review.ts';

export interface SettleOptions {
  readonly paid?: string;
  readonly declined?: string;
  readonly notCharged?: boolean;
  readonly refunded?: string;
  readonly notRefunded?: boolean;
  readonly by: string;
  readonly note: string;
}

/** Throws an error that names missing, surplus or wrong options. */
export function decisionOf(id: string, options: SettleOptions): Decision {
  const given = found(options);
  const isRefund = id.startsWith('rf_');
  const possible = isRefund
    ? '--refunded <gatewayRefundId> or --not-refunded'
    : '--paid <gatewayChargeId>, --declined <code> or --not-charged';
  const [one] = given;
  if (!one || given.length > 1) throw new Error(`Give exactly one of ${possible}.`);
  const isOfRefund = one.outcome === 'refunded' || one.outcome === 'not_refunded';
  if (isOfRefund !== isRefund) throw new Error(`${id} allows only ${possible}.`);
  if (one.code !== null && !isDeclineCode(one.code)) {
    throw new Error(`--declined takes one of: ${Object.keys(DECLINES).join(', ')}.`);
  }
  const by = options.by.trim();
  const note = options.note.trim();
  if (by === '' || note === '' || one.gatewayId === '') {
    throw new Error('--by, --note and the id of a charge or refund must not be empty.');
  }
  return { ...one, by, note };
}

type Found = Omit<Decision, 'by' | 'note'>;

function found(options: SettleOptions): Found[] {
  const all: Found[] = [];
  const add = (outcome: ReviewOutcome, more: Partial<Found> = {}): void =>
    void all.push({ outcome, gatewayId: null, code: null, ...more });
  if (options.paid !== undefined) add('paid', { gatewayId: options.paid.trim() });
  if (options.declined !== undefined) add('declined', { code: options.declined });
  if (options.notCharged) add('not_charged');
  if (options.refunded !== undefined) add('refunded', { gatewayId: options.refunded.trim() });
  if (options.notRefunded) add('not_refunded');
  return all;
}
