import { describe, expect } from 'vitest';
import { GatewayRejectedRequest } from '../../gateways/port.ts';
import {
  chargeRequest,
  gatewayOf,
  onStripe as it,
  preparedCharge,
  refuseNext,
} from '../support/stripe.ts';
import { STORED_500_HEADER } from '../../tools/stripe-double/api.ts';
import type { StripeWorld } from '../support/stripe.ts';

/** Refusals of Stripe that are answers about the payment, and refusals that show a mistake of ours. */

const CREATE = { method: 'POST', path: '/v1/payment_intents' };
const CONFIRM = { method: 'POST', path: '/v1/payment_intents/*/confirm' };
const REFUND = { method: 'POST', path: '/v1/refunds' };

const declined = (gatewayCode: string, gatewayChargeId: string | null = null) => ({
  kind: 'declined',
  code: 'processing_error',
  gatewayChargeId,
  gatewayCode,
  networkCode: null,
  advice: null,
});

describe('a charge that Stripe refuses definitely', () => {
  it.for([
    ['amount_too_small', { code: 'amount_too_small', param: 'amount' }],
    ['payment_method_not_available', { code: 'payment_method_not_available' }],
    ['invalid_request_error', { param: 'currency' }],
  ] as const)(
    'is declined with processing_error and the code %s when it is refused before its confirmation [D-42]',
    async ([code, error], { world }) => {
      const request = await chargeRequest(world);
      await refuseNext(world, CREATE, error);
      expect(await gatewayOf(world).prepare?.(request)).toEqual(declined(code));
    },
  );

  it.for([
    [1_234, 'KWD', 'invalid_charge_amount'],
    [100_000_000, 'USD', 'amount_too_large'],
  ] as const)(
    'is declined without a request for %i minor units of %s, with the code %s [D-02, D-42]',
    async ([amountMinor, currency, code], { world }) => {
      const request = await chargeRequest(world, { amountMinor, currency });
      expect(await gatewayOf(world).prepare?.(request)).toEqual(declined(code));
    },
  );

  it('is cancelled at Stripe and declined when its confirmation is refused [D-40, D-42]', async ({
    world,
  }) => {
    const request = await preparedCharge(world);
    await refuseNext(world, CONFIRM, { code: 'amount_too_small', param: 'amount' });
    const id = request.gatewayChargeId;
    expect(await gatewayOf(world).charge(request)).toEqual(declined('amount_too_small', id));
    expect((await world.stripe.paymentIntents.retrieve(id)).status).toBe('canceled');
    expect(await gatewayOf(world).charge(request)).toMatchObject({
      kind: 'declined',
      code: 'processing_error',
    });
  });

  it('is succeeded when an earlier confirmation was executed [D-40]', async ({ world }) => {
    const request = await preparedCharge(world);
    await world.stripe.paymentIntents.confirm(request.gatewayChargeId, { off_session: true });
    await refuseNext(world, CONFIRM, { code: 'amount_too_small', param: 'amount' });
    expect(await gatewayOf(world).charge(request)).toEqual({
      kind: 'succeeded',
      gatewayChargeId: request.gatewayChargeId,
    });
  });
});

const LIVE_CHARGES = 'Your account cannot currently make live charges.';

describe('a charge that Stripe refuses because of the account', () => {
  it.for([
    [400, { message: LIVE_CHARGES }, `Stripe answered 400 ${LIVE_CHARGES}`],
    [400, { code: 'testmode_charges_only' }, 'Stripe answered 400 testmode_charges_only'],
    [400, { code: 'capability_not_active' }, 'Stripe answered 400 capability_not_active'],
    [401, { code: 'api_key_expired' }, 'Stripe answered 401 api_key_expired'],
    [403, { code: 'account_invalid' }, 'Stripe answered 403 account_invalid'],
  ] as const)(
    'with %i %j is not sent and not declined, before its confirmation and at it [D-46]',
    async ([status, error, reason], { world }) => {
      const unsent = { kind: 'not_sent', reason, isAccountRefused: true };
      const request = await chargeRequest(world);
      await refuseNext(world, CREATE, error, status);
      expect(await gatewayOf(world).prepare?.(request)).toEqual(unsent);
      const prepared = await preparedCharge(world);
      await refuseNext(world, CONFIRM, error, status);
      expect(await gatewayOf(world).charge(prepared)).toEqual(unsent);
      // The same charge is made when Stripe takes it.
      expect(await gatewayOf(world).charge(prepared)).toEqual({
        kind: 'succeeded',
        gatewayChargeId: prepared.gatewayChargeId,
      });
    },
  );
});

describe('a charge in a request that is our mistake, or that is refused for an unknown reason', () => {
  it.for([
    [{ code: 'parameter_unknown', param: 'foo' }, 'Stripe answered 400 parameter_unknown'],
    [{ code: 'resource_missing', param: 'intent' }, 'Stripe answered 400 resource_missing'],
    [{ param: 'foo', message: 'Wrong.' }, 'Stripe answered 400 Wrong.'],
    [{ code: 'a_code_of_tomorrow' }, 'Stripe answered 400 a_code_of_tomorrow'],
  ] as const)(
    '%j is not sent, not declined, and no trouble of the account [D-46]',
    async ([error, reason], { world }) => {
      const request = await chargeRequest(world);
      await refuseNext(world, CREATE, error);
      expect(await gatewayOf(world).prepare?.(request)).toEqual({ kind: 'not_sent', reason });
    },
  );

  it('is rejected if its key has another charge [D-39]', async ({ world }) => {
    const request = await chargeRequest(world);
    await refuseNext(world, CREATE, { type: 'idempotency_error' });
    await expect(gatewayOf(world).prepare?.(request)).rejects.toThrow(GatewayRejectedRequest);
  });
});

describe('a refund that Stripe refuses definitely', () => {
  async function paid(world: StripeWorld) {
    const request = await preparedCharge(world);
    await gatewayOf(world).charge(request);
    const { gatewayChargeId, key } = request;
    return { key: `refund:${key}`, gatewayChargeId, amountMinor: 500, currency: 'USD' };
  }

  it('is refused with charge_disputed while a dispute is open, and nothing is refunded', async ({
    world,
  }) => {
    const refund = await paid(world);
    const { latest_charge: chargeId } = await world.stripe.paymentIntents.retrieve(
      refund.gatewayChargeId,
    );
    await world.control('POST', 'disputes', { chargeId });
    expect(await gatewayOf(world).refund(refund)).toEqual({
      kind: 'refused',
      reason: 'charge_disputed',
    });
    const { data } = await world.stripe.refunds.list({ payment_intent: refund.gatewayChargeId });
    expect(data).toEqual([]);
  });

  it.for([
    [{ code: 'refund_disputed_payment' }, { reason: 'charge_disputed' }],
    [{ code: 'balance_insufficient' }, { reason: 'balance_insufficient' }],
    [{ code: 'insufficient_funds' }, { reason: 'balance_insufficient' }],
    [
      { message: 'Insufficient funds in your Stripe balance to refund this amount.' },
      { reason: 'balance_insufficient' },
    ],
    [
      { code: 'charge_not_refundable' },
      { reason: 'refund_not_possible', gatewayCode: 'charge_not_refundable' },
    ],
  ] as const)('is refused after %j as %j, and succeeds later', async ([error, why], { world }) => {
    const refund = await paid(world);
    await refuseNext(world, REFUND, error);
    expect(await gatewayOf(world).refund(refund)).toEqual({ kind: 'refused', ...why });
    expect((await gatewayOf(world).refund({ ...refund, key: `${refund.key}b` })).kind).toBe(
      'refunded',
    );
  });

  it.for([
    ['done', { kind: 'refunded', gatewayRefundId: expect.any(String) as string }, [500]],
    ['none', { kind: 'unknown', reason: 'Stripe answered 500 api_error' }, []],
  ] as const)(
    'gets no second key when Stripe stored a 500 under its key (effect: %s) [D-40]',
    async ([effect, repeated, refunded], { world }) => {
      const refund = await paid(world);
      await world.faults('DELETE', 'faults');
      const headers = { [STORED_500_HEADER]: effect };
      await world.faults('POST', 'faults', { ...REFUND, fault: 'add_headers', headers, count: 1 });
      const stored = { kind: 'unknown', reason: 'Stripe answered 500 api_error' };
      expect(await gatewayOf(world).refund(refund)).toEqual(stored);
      expect(await gatewayOf(world).refund(refund)).toEqual(repeated);
      expect(await gatewayOf(world).refund(refund)).toEqual(repeated);
      const { data } = await world.stripe.refunds.list({ payment_intent: refund.gatewayChargeId });
      expect(data.map(({ amount }) => amount)).toEqual(refunded);
    },
  );

  it('is rejected as our mistake when its key was used for another refund [D-40]', async ({
    world,
  }) => {
    const refund = await paid(world);
    await refuseNext(world, REFUND, { type: 'idempotency_error' });
    await expect(gatewayOf(world).refund(refund)).rejects.toThrow(GatewayRejectedRequest);
  });
});

describe('a PaymentIntent whose creation Stripe answered with 500 and stored', () => {
  it.for(['done', 'none'] as const)(
    'is created under a further key, and found there by every repeat (effect: %s) [D-32]',
    async (effect, { world }) => {
      const gateway = gatewayOf(world);
      const request = await chargeRequest(world);
      await world.faults('DELETE', 'faults');
      await world.faults('POST', 'faults', {
        ...CREATE,
        fault: 'add_headers',
        headers: { [STORED_500_HEADER]: effect },
        count: 1,
      });
      expect(await gateway.prepare?.(request)).toEqual({
        kind: 'unknown',
        reason: 'Stripe answered 500 api_error',
      });
      const made = await gateway.prepare?.(request);
      if (made?.kind !== 'prepared') throw new Error(`not prepared: ${made?.kind}`);
      expect(await gateway.prepare?.(request)).toEqual(made);
      expect(await gateway.charge({ ...request, ...made })).toMatchObject({ kind: 'succeeded' });
      const { charges } = await world.control('GET', 'charges');
      expect(
        (charges as { metadata: { key: string } }[]).filter(
          ({ metadata }) => metadata.key === request.key,
        ),
      ).toHaveLength(1);
    },
  );
});
