import type { HostedPayment } from '../../../db/repositories/payments/hosted.ts';
import { intentStatusAt } from '../../../domain/payment-intent.ts';
import { isAtBank } from '../shared/bank.tsx';
import { CARD_TRIES_MAX } from '../../../domain/payment-method.ts';

/**
 * Computed from the intent, never stored. `processing`: the outcome of an attempt is unknown. `atBank`: the bank
 * waits for the payer. `locked`: too many cards were declined.
 */
export type PaymentStage =
  | 'open'
  | 'locked'
  | 'processing'
  | 'atBank'
  | 'paid'
  | 'refunded'
  | 'expired'
  | 'cancelled';

export function paymentStageOf(payment: HostedPayment, nowAt: number): PaymentStage {
  switch (intentStatusAt(payment, nowAt)) {
    case 'CREATED':
    case 'FAILED':
      return payment.tries >= CARD_TRIES_MAX[payment.mode] ? 'locked' : 'open';
    case 'PENDING':
      return isAtBank(payment.attempt) ? 'atBank' : 'processing';
    case 'SUCCESS':
    case 'PARTIALLY_REFUNDED':
      return 'paid';
    case 'REFUNDED':
      return 'refunded';
    case 'CANCELLED':
      return payment.status === 'CANCELLED' ? 'cancelled' : 'expired';
  }
}
