import { log } from '@temporalio/workflow';
import { carryOut } from './carry-out.ts';
import type { OrderInput, OrderResult } from './messages.ts';

export function payment(input: OrderInput<'payment'>): Promise<OrderResult<'payment'>> {
  return carryOut('payment', input);
}

export function refund(input: OrderInput<'refund'>): Promise<OrderResult<'refund'>> {
  return carryOut('refund', input);
}

export function setupMethod(input: OrderInput<'setupMethod'>): Promise<OrderResult<'setupMethod'>> {
  return carryOut('setupMethod', input);
}

/** Checks for a week whether the gateway has charged an attempt that is settled as not paid. A charge is refunded. */
export async function lateCharge(
  input: OrderInput<'lateCharge'>,
): Promise<OrderResult<'lateCharge'>> {
  const result = await carryOut('lateCharge', input);
  const { outcome } = result;
  if (outcome.kind === 'found') log.warn('late charge found; it is refunded', { ...outcome });
  return result;
}
