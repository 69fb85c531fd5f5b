import { randomUUID } from 'node:crypto';
import { describe, expect } from 'vitest';
import { GatewayRejectedRequest } from '../../gateways/port.ts';
import { describePendingRefunds } from './gateway-pending-refund.contract.ts';
import { describeUnknownOutcomes } from './gateway-unknown-outcome.contract.ts';
import { chargeRequest, onGateway, savedMethod } from './gateway-harness.ts';
import type { GatewayHarness, GatewayTest } from './gateway-harness.ts';

/** Defines the tests of the promises in `gateways/port.ts`, which every gateway adapter must keep. */
export function describeGatewayContract(
  name: string,
  start: () => Promise<GatewayHarness>,
  abilities: {
    /** True: the harness can make the gateway fail on demand. */
    readonly canFail: boolean;
    /** False: the harness cannot fill in the gateway's card form. Default: true. */
    readonly canEnterCards?: boolean;
    /** True: the tests are skipped, because the credentials of the gateway were not given. */
    readonly isSkipped?: boolean;
  },
): void {
  const it = onGateway(start);
  const { isSkipped = false, canEnterCards = true, canFail } = abilities;
  // Side by side: Vitest counts no test as skipped that is in a group within a skipped group.
  describe.skipIf(isSkipped)(`${name} as a payment gateway`, () => {
    describeCharging(it);
    describeRefunds(it);
    describeWithdrawing(it);
  });
  describe.skipIf(isSkipped || !canEnterCards)(
    `${name} as a payment gateway with its card form`,
    () => {
      describeSaving(it);
    },
  );
  describe.skipIf(isSkipped || !canFail)(
    `${name} as a payment gateway that fails on demand`,
    () => {
      describeUnknownOutcomes(it);
      describePendingRefunds(it);
    },
  );
}

function describeCharging(it: GatewayTest): void {
  it('charges the amount and returns the charge id [D-40]', async ({ harness }) => {
    const request = await chargeRequest(harness);
    const outcome = await harness.gateway.charge(request);
    expect(outcome).toEqual({ kind: 'succeeded', gatewayChargeId: expect.any(String) });
    expect(await harness.book(request.subscriptionId)).toMatchObject([
      { key: request.key, outcome: 'succeeded', amountMinor: 1_999 },
    ]);
  });

  it('makes one charge for a key sent twice, with the same answer [D-32]', async ({ harness }) => {
    const request = await chargeRequest(harness);
    const first = await harness.gateway.charge(request);
    expect(first.kind).toBe('succeeded');
    expect(await harness.gateway.charge(request)).toEqual(first);
    expect(await harness.book(request.subscriptionId)).toHaveLength(1);
  });

  it('makes one charge for a key sent twice without a subscription [D-40]', async ({ harness }) => {
    const reference = {
      merchantId: 'mer_1',
      intentId: 'in_1',
      subscriptionId: null,
      paymentMethodId: 'pmt_1',
    };
    const request = await chargeRequest(harness, { reference });
    const first = await harness.gateway.charge(request);
    expect(first.kind).toBe('succeeded');
    expect(await harness.gateway.charge(request)).toEqual(first);
  });

  it('makes one charge for a key sent ten times in parallel [D-32]', async ({ harness }) => {
    const request = await chargeRequest(harness);
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, () => harness.gateway.charge(request)),
    );
    expect(outcomes[0]?.kind).toBe('succeeded');
    for (const outcome of outcomes) expect(outcome).toEqual(outcomes[0]);
    expect(await harness.book(request.subscriptionId)).toHaveLength(1);
  });

  it.for([
    ['amount', { amountMinor: 2_000 }],
    ['currency', { currency: 'EUR' }],
  ] as const)(
    'rejects a used key with another %s and makes no second charge [D-32]',
    async ([, other], { harness }) => {
      const request = await chargeRequest(harness);
      await harness.gateway.charge(request);
      await expect(harness.gateway.charge({ ...request, ...other })).rejects.toThrow(
        GatewayRejectedRequest,
      );
      expect(await harness.book(request.subscriptionId)).toMatchObject([{ amountMinor: 1_999 }]);
    },
  );

  it('declines with the card’s code, and repeats the decline for the same key [D-42]', async ({
    harness,
  }) => {
    expect(harness.decliningCards.length).toBeGreaterThan(0);
    for (const { number, code } of harness.decliningCards) {
      const gatewayMethodId = await savedMethod(harness, number);
      const request = await chargeRequest(harness, { gatewayMethodId });
      const outcome = await harness.gateway.charge(request);
      expect(outcome).toMatchObject({ kind: 'declined', code });
      expect(await harness.gateway.charge(request)).toEqual(outcome);
    }
  });

  it('declines with expired_card from the end of the card’s month on if it says so, else decides itself [D-61, D-60]', async ({
    harness,
  }) => {
    const { declinesExpired = false } = harness.gateway.capabilities;
    const chargedAt = async (openedAt: number) => {
      const outcome = await harness.gateway.charge(await chargeRequest(harness, { openedAt }));
      return outcome.kind === 'declined' ? outcome.code : outcome.kind;
    };
    // The cards of every harness expire at the end of 12/34.
    expect(await chargedAt(Date.parse('2034-12-31T23:59:59.999Z'))).toBe('succeeded');
    expect(await chargedAt(Date.parse('2035-01-01T00:00:00Z'))).toBe(
      declinesExpired ? 'expired_card' : 'succeeded',
    );
  });

  it('declines an unknown payment method with payment_method_removed [D-42]', async ({
    harness,
  }) => {
    const { gateway } = harness;
    const request = await chargeRequest(harness);
    // Another key, because the first one belongs to the prepared charge of another method.
    const removed = { ...request, key: `${request.key}0`, gatewayMethodId: 'pm_nobody' };
    const send = gateway.prepare ?? gateway.charge;
    expect(await send(removed)).toMatchObject({
      kind: 'declined',
      code: 'payment_method_removed',
    });
  });

  it('returns the outcome of a paid or declined key in a look-up [D-32]', async ({ harness }) => {
    for (const number of [harness.payingCard, harness.decliningCards[0]?.number ?? '']) {
      const gatewayMethodId = await savedMethod(harness, number);
      const request = await chargeRequest(harness, { gatewayMethodId });
      const outcome = await harness.gateway.charge(request);
      expect(await harness.gateway.lookup(request)).toEqual(outcome);
    }
  });

  it('reports an unused key as absent in a look-up [D-32]', async ({ harness: { gateway } }) => {
    const never = {
      key: `charge:in_${randomUUID()}:1`,
      gatewayChargeId: null,
      amountMinor: 1_999,
      currency: 'USD',
    };
    expect(await gateway.lookup(never)).toEqual({ kind: 'absent' });
  });

  it('reports another_charge when a look-up names another amount or currency than the charge [D-32]', async ({
    harness,
  }) => {
    const request = await chargeRequest(harness);
    await harness.gateway.charge(request);
    for (const difference of [{ amountMinor: 1_998 }, { currency: 'EUR' }]) {
      expect(await harness.gateway.lookup({ ...request, ...difference })).toEqual({
        kind: 'another_charge',
        reason: 'under this key the gateway has a charge of 1999 USD',
      });
    }
  });
}

function describeRefunds(it: GatewayTest): void {
  const paid = async (harness: GatewayHarness) => {
    const { gateway } = harness;
    const request = await chargeRequest(harness);
    const charge = await gateway.charge(request);
    if (charge.kind !== 'succeeded') throw new Error(`not paid: ${charge.kind}`);
    return { gateway, gatewayChargeId: charge.gatewayChargeId, currency: 'USD' };
  };
  const key = () => `refund:${randomUUID()}`;

  it('refunds a part, then the rest, and not one unit more [D-40]', async ({ harness }) => {
    const { gateway, ...charge } = await paid(harness);
    const refund = (amountMinor: number) => gateway.refund({ ...charge, key: key(), amountMinor });
    const kind = 'refunded';
    expect(await refund(500)).toEqual({ kind, gatewayRefundId: expect.any(String) });
    expect(await refund(1_500)).toEqual({ kind: 'refused', reason: 'exceeds_charge' });
    expect((await refund(1_499)).kind).toBe(kind);
    expect(await refund(1)).toEqual({ kind: 'refused', reason: 'exceeds_charge' });
  });

  it('refunds once per key [D-40]', async ({ harness }) => {
    const { gateway, ...charge } = await paid(harness);
    const request = { ...charge, key: key(), amountMinor: 1_000 };
    const first = await gateway.refund(request);
    expect(first.kind).toBe('refunded');
    expect(await gateway.refund(request)).toEqual(first);
    await expect(gateway.refund({ ...request, amountMinor: 999 })).rejects.toThrow(
      GatewayRejectedRequest,
    );
    // 999 of 1,999 are left, because the repeats refund nothing.
    const rest = { ...charge, key: key(), amountMinor: 1_000 };
    expect(await gateway.refund(rest)).toEqual({ kind: 'refused', reason: 'exceeds_charge' });
  });

  it('never refunds more than the charge in parallel refunds [D-40]', async ({ harness }) => {
    const { gateway, ...charge } = await paid(harness);
    const outcomes = await Promise.all(
      [1, 2, 3, 4].map(() => gateway.refund({ ...charge, key: key(), amountMinor: 800 })),
    );
    expect(outcomes.map((outcome) => outcome.kind).toSorted()).toEqual([
      'refunded',
      'refunded',
      'refused',
      'refused',
    ]);
  });

  it('refuses a refund of an unknown or declined charge, or in another currency [D-40]', async ({
    harness,
  }) => {
    const { gateway, ...charge } = await paid(harness);
    const refund = { ...charge, amountMinor: 100 };
    expect(await gateway.refund({ ...refund, key: key(), gatewayChargeId: 'ch_nobody' })).toEqual({
      kind: 'refused',
      reason: 'charge_not_found',
    });
    expect(await gateway.refund({ ...refund, key: key(), currency: 'EUR' })).toEqual({
      kind: 'refused',
      reason: 'currency_differs',
    });
    const gatewayMethodId = await savedMethod(harness, harness.decliningCards[0]?.number ?? '');
    const declined = await gateway.charge(await chargeRequest(harness, { gatewayMethodId }));
    const gatewayChargeId = 'gatewayChargeId' in declined ? declined.gatewayChargeId : null;
    expect(
      await gateway.refund({ ...refund, key: key(), gatewayChargeId: gatewayChargeId ?? '' }),
    ).toEqual({ kind: 'refused', reason: 'charge_not_paid' });
  });
}

function describeWithdrawing(it: GatewayTest): void {
  const withdrawable = async (
    harness: GatewayHarness,
    skip: (no: boolean, why: string) => void,
  ) => {
    skip(harness.gateway.withdraw === null, 'this adapter cannot withdraw a charge');
    const request = await chargeRequest(harness);
    const withdraw = async () => harness.gateway.withdraw?.(request);
    return { request, withdraw, gateway: harness.gateway };
  };

  it('never makes a charge that was withdrawn, even when its request arrives later [D-§4]', async ({
    harness,
    skip,
  }) => {
    const { request, withdraw, gateway } = await withdrawable(harness, skip);
    expect(await withdraw()).toEqual({ kind: 'withdrawn' });
    expect(await withdraw()).toEqual({ kind: 'withdrawn' });
    expect(await gateway.charge(request)).toMatchObject({ kind: 'declined' });
    expect(await harness.book(request.subscriptionId)).toEqual([]);
  });

  it('returns the outcome of a paid or declined charge when the charge is withdrawn [D-§4]', async ({
    harness,
    skip,
  }) => {
    const { request, withdraw, gateway } = await withdrawable(harness, skip);
    const outcome = await gateway.charge(request);
    expect(outcome.kind).toBe('succeeded');
    expect(await withdraw()).toEqual(outcome);
    const gatewayMethodId = await savedMethod(harness, harness.decliningCards[0]?.number ?? '');
    const declined = await chargeRequest(harness, { gatewayMethodId });
    const decline = await gateway.charge(declined);
    expect(decline.kind).toBe('declined');
    expect(await gateway.withdraw?.(declined)).toEqual(decline);
  });
}

function describeSaving(it: GatewayTest): void {
  it('saves a card once per key and returns its details [D-36]', async ({
    harness: { gateway, issueToken, payingCard },
  }) => {
    const token = await issueToken(payingCard, 'cs_twice');
    const request = { key: `save:${randomUUID()}`, token, session: 'cs_twice' };
    const [first, second] = await Promise.all([
      gateway.saveMethod(request),
      gateway.saveMethod(request),
    ]);
    expect(first).toMatchObject({
      kind: 'saved',
      card: { lastFourDigit: payingCard.slice(-4), expiryMonth: 12 },
      enteredAt: expect.any(Number) as number,
    });
    expect(second).toEqual(first);
    expect(await gateway.saveMethod(request)).toEqual(first);
  });

  it('finds the card of a saved method in a look-up, and reports an unknown id as removed [D-36]', async ({
    harness,
  }) => {
    const gatewayMethodId = await savedMethod(harness, harness.payingCard);
    const lookup = (id: string) => harness.gateway.lookupMethod(id);
    expect(await lookup(gatewayMethodId)).toMatchObject({
      kind: 'found',
      card: { gatewayMethodId, brand: 'visa', lastFourDigit: '4242', expiryMonth: 12 },
    });
    expect(await lookup(`${gatewayMethodId}x`)).toEqual({ kind: 'removed' });
  });

  it('accepts a token only once [D-61]', async ({
    harness: { gateway, issueToken, payingCard, rereadableTokens },
    skip,
  }) => {
    skip(rereadableTokens !== null, String(rereadableTokens));
    const token = await issueToken(payingCard, 'cs_1');
    const save = () => gateway.saveMethod({ key: `save:${randomUUID()}`, token, session: 'cs_1' });
    expect((await save()).kind).toBe('saved');
    expect(await save()).toMatchObject({ kind: 'refused', code: 'processing_error' });
  });

  it('accepts a token only with its own session, also after a refusal for another session [D-61]', async ({
    harness: { gateway, issueToken, payingCard },
  }) => {
    const token = await issueToken(payingCard, 'cs_own');
    const save = (session: string) =>
      gateway.saveMethod({ key: `save:${randomUUID()}`, token, session });
    expect(await save('cs_other')).toMatchObject({ kind: 'refused', code: 'processing_error' });
    expect((await save('cs_own')).kind).toBe('saved');
  });

  it('rejects a used key with another token [D-61]', async ({
    harness: { gateway, issueToken, payingCard, rereadableTokens },
    skip,
  }) => {
    skip(rereadableTokens !== null, String(rereadableTokens));
    const key = `save:${randomUUID()}`;
    const save = async () =>
      gateway.saveMethod({ key, token: await issueToken(payingCard, 'cs_2'), session: 'cs_2' });
    expect((await save()).kind).toBe('saved');
    await expect(save()).rejects.toThrow(GatewayRejectedRequest);
  });
}
