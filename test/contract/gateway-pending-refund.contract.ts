import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { RefundRequest } from '../../gateways/port.ts';
import { chargeRequest } from './gateway-harness.ts';
import type { GatewayHarness, GatewayTest } from './gateway-harness.ts';

/** A refund that is not refused has one of these outcomes, because the gateway may leave a refund pending. */
const ACCEPTED = ['refunded', 'pending'];

/**
 * Defines the contract tests of refunds that the gateway decides later, and of refunds that fail after they
 * succeeded.
 */
export function describePendingRefunds(it: GatewayTest): void {
  it('reports a pending refund as pending until it has succeeded [D-40]', async ({ harness }) => {
    const { request, state, decide } = await pendingRefund(harness);
    const { gatewayRefundId } = request;
    expect(await state()).toEqual({ kind: 'pending', gatewayRefundId });
    await decide('succeeded');
    expect(await state()).toEqual({ kind: 'refunded', gatewayRefundId });
    expect(await state()).toEqual({ kind: 'refunded', gatewayRefundId });
  });

  it('refuses a refund that would exceed the charge together with a pending refund [D-40]', async ({
    harness,
  }) => {
    const { request } = await pendingRefund(harness);
    const second = { ...request, key: `refund:${randomUUID()}`, amountMinor: 1_500 };
    expect(await harness.gateway.refund(second)).toEqual({
      kind: 'refused',
      reason: 'exceeds_charge',
    });
  });

  it('makes no second refund when the request of a pending refund is repeated [D-40]', async ({
    harness: { gateway, ...harness },
  }) => {
    const { request } = await pendingRefund({ gateway, ...harness });
    const { gatewayRefundId } = request;
    expect(await gateway.refund(request)).toEqual({ kind: 'pending', gatewayRefundId });
    const rest = { ...request, key: `refund:${randomUUID()}`, amountMinor: 1_499 };
    expect(ACCEPTED).toContain((await gateway.refund(rest)).kind);
  });

  it('reports a pending refund as refused when the refund fails, and can refund its amount again [D-40]', async ({
    harness,
  }) => {
    const { request, state, decide } = await pendingRefund(harness);
    await decide('failed');
    expect(await state()).toEqual({ kind: 'refused', reason: 'refund_failed' });
    expect(await harness.gateway.refund(request)).toEqual({
      kind: 'refused',
      reason: 'refund_failed',
    });
    const again = { ...request, key: `refund:${randomUUID()}`, amountMinor: 1_999 };
    expect(ACCEPTED).toContain((await harness.gateway.refund(again)).kind);
  });

  it('reports a refund as refused when the refund fails after its success, and can refund its amount again [D-40]', async ({
    harness,
  }) => {
    const { request, state, decide } = await pendingRefund(harness);
    await decide('succeeded');
    await decide('failed');
    expect(await state()).toEqual({ kind: 'refused', reason: 'refund_failed' });
    const again = { ...request, key: `refund:${randomUUID()}`, amountMinor: 1_999 };
    expect(ACCEPTED).toContain((await harness.gateway.refund(again)).kind);
  });

  it('finds a refund by its id and by its key in a look-up, and reports another key as absent [D-40]', async ({
    harness: { gateway, ...harness },
  }) => {
    const { request } = await pendingRefund({ gateway, ...harness });
    const { gatewayRefundId } = request;
    const lookUp = (changes: object) => gateway.lookupRefund({ ...request, ...changes });
    const pending = { kind: 'pending', gatewayRefundId };
    expect(await lookUp({})).toEqual(pending);
    // Stripe lists at most 100 refunds on one page, the newest first.
    for (let later = 0; later < 101; later += 1) {
      await gateway.refund({ ...request, key: `refund:${randomUUID()}`, amountMinor: 1 });
    }
    expect(await lookUp({ gatewayRefundId: null })).toEqual(pending);
    const never = { gatewayRefundId: null, key: `refund:${randomUUID()}` };
    expect(await lookUp(never)).toEqual({ kind: 'absent' });
  });
}

/** Makes a charge of 19.99 USD, and a refund of 5.00 USD of this charge that stays pending. */
async function pendingRefund(harness: GatewayHarness) {
  const { gateway, refunds } = harness;
  const charge = await gateway.charge(await chargeRequest(harness));
  if (charge.kind !== 'succeeded') throw new Error(`not paid: ${charge.kind}`);
  const { gatewayChargeId } = charge;
  if (refunds === null) throw new Error('this harness declares canFail and has no refunds');
  await refunds.leavePending(gatewayChargeId);
  const order: RefundRequest = {
    key: `refund:${randomUUID()}`,
    gatewayChargeId,
    amountMinor: 500,
    currency: 'USD',
  };
  const made = await gateway.refund(order);
  if (made.kind !== 'pending') throw new Error(`not pending: ${made.kind}`);
  const request = { ...order, gatewayRefundId: made.gatewayRefundId };
  return {
    request,
    /** The state that the gateway shows. */
    state: () => gateway.lookupRefund(request),
    decide: (status: 'succeeded' | 'failed') => refunds.decide(request, status),
  };
}
