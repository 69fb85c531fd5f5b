import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { chargeRequest, prepared } from './gateway-harness.ts';
import type { GatewayTest } from './gateway-harness.ts';

/** Defines the contract tests of requests whose outcome the client cannot know. */
export function describeUnknownOutcomes(it: GatewayTest): void {
  it.for(['lose_answer', 'error_500'] as const)(
    'reports a charge as unknown after the fault %s; look-up and resend find the one charge [D-32]',
    async (fault, { harness, faults }) => {
      const request = await chargeRequest(harness);
      await faults.once({ operation: 'charge', fault });
      expect((await harness.gateway.charge(request)).kind).toBe('unknown');
      const found = await harness.gateway.lookup(request);
      const resent = await harness.gateway.charge(request);
      expect(resent.kind).toBe('succeeded');
      expect(found).toEqual(resent);
      expect(await harness.book(request.subscriptionId)).toMatchObject([
        { key: request.key, sentCount: 2 },
      ]);
    },
  );

  it.for(['lose_answer', 'error_500'] as const)(
    'reports a charge as absent in a look-up when the fault %s prevented the charge [D-32]',
    async (fault, { harness, faults }) => {
      const request = await chargeRequest(harness);
      await faults.once({ operation: 'charge', fault, effect: 'none' });
      expect((await harness.gateway.charge(request)).kind).toBe('unknown');
      expect(await harness.gateway.lookup(request)).toEqual({ kind: 'absent' });
      expect((await harness.gateway.charge(request)).kind).toBe('succeeded');
      expect(await harness.book(request.subscriptionId)).toMatchObject([{ sentCount: 1 }]);
    },
  );

  it('makes one charge when a resend overtakes the delayed first send [D-32]', async ({
    harness,
    faults,
  }) => {
    const request = await chargeRequest(harness);
    await faults.once({ operation: 'charge', fault: 'delay', delayMs: 2_000 });
    expect((await harness.chargeAndGiveUp(request)).kind).toBe('unknown');
    const resent = await harness.gateway.charge(request);
    expect(resent.kind).toBe('succeeded');
    // Waits until the delayed first send has arrived.
    await expect
      .poll(async () => (await harness.book(request.subscriptionId))[0]?.sentCount)
      .toBe(2);
    expect(await harness.book(request.subscriptionId)).toHaveLength(1);
    expect(await harness.gateway.charge(request)).toEqual(resent);
    expect(await harness.gateway.lookup(request)).toEqual(resent);
  });

  it('reports a delayed charge as in progress, or as absent if a resend is safe [D-32]', async ({
    harness,
    faults,
  }) => {
    const request = await chargeRequest(harness);
    await faults.once({ operation: 'charge', fault: 'delay', delayMs: 60_000 });
    expect((await harness.chargeAndGiveUp(request)).kind).toBe('unknown');
    // A prepared charge is made at most once, so it may be sent again before the first send arrives.
    const kind = harness.gateway.prepare === null ? 'in_progress' : 'absent';
    expect(await harness.gateway.lookup(request)).toEqual({ kind });
    const resent = await harness.gateway.charge(request);
    expect(await harness.gateway.lookup(request)).toEqual(resent);
  });

  it('reports unknown when a look-up fails [D-32]', async ({ harness, faults }) => {
    const request = await chargeRequest(harness);
    await faults.once({ operation: 'lookup', fault: 'lose_answer' });
    expect((await harness.gateway.lookup(request)).kind).toBe('unknown');
  });

  it('saves one card when the first answer was lost and the request is repeated [D-61]', async ({
    harness: { gateway, issueToken, payingCard },
    faults,
  }) => {
    const token = await issueToken(payingCard, 'cs_lost');
    const request = { key: `save:${randomUUID()}`, token, session: 'cs_lost' };
    await faults.once({ operation: 'methods', fault: 'lose_answer' });
    expect((await gateway.saveMethod(request)).kind).toBe('unknown');
    expect((await gateway.saveMethod(request)).kind).toBe('saved');
  });

  it('refunds once when the first answer was lost and the request is repeated [D-40]', async ({
    harness,
    faults,
  }) => {
    const charge = await harness.gateway.charge(await chargeRequest(harness));
    if (charge.kind !== 'succeeded') throw new Error(charge.kind);
    const { gatewayChargeId } = charge;
    const refund = { key: `refund:${randomUUID()}`, gatewayChargeId, currency: 'USD' };
    await faults.once({ operation: 'refund', fault: 'lose_answer' });
    const send = () => harness.gateway.refund({ ...refund, amountMinor: 1_999 });
    expect((await send()).kind).toBe('unknown');
    expect(['refunded', 'pending']).toContain((await send()).kind);
  });

  it('declines the next charges with the forced codes, and a resend uses up no code [D-61]', async ({
    harness,
    faults,
  }) => {
    const first = await chargeRequest(harness);
    await faults.decline(first.subscriptionId, 'insufficient_funds', 1);
    await faults.decline(first.subscriptionId, 'lost_card', 1);
    const codes: unknown[] = [];
    for (const attempt of [1, 2, 3]) {
      const request = await prepared(harness.gateway, {
        ...first,
        key: `${first.key}:${attempt}`,
      });
      const outcome = await harness.gateway.charge(request);
      expect(await harness.gateway.charge(request)).toEqual(outcome);
      codes.push('code' in outcome ? outcome.code : outcome.kind);
    }
    expect(codes).toEqual(['insufficient_funds', 'lost_card', 'succeeded']);
  });

  it('uses one forced decline for ten parallel sends of one charge [D-61]', async ({
    harness,
    faults,
  }) => {
    const first = await chargeRequest(harness);
    await faults.decline(first.subscriptionId, 'card_declined', 2);
    const parallelSends = await Promise.all(
      Array.from({ length: 10 }, () => harness.gateway.charge(first)),
    );
    expect(new Set(parallelSends.map((outcome) => outcome.kind))).toEqual(new Set(['declined']));
    const next = async (attempt: number) => {
      const request = { ...first, key: `${first.key}:${attempt}` };
      return (await harness.gateway.charge(await prepared(harness.gateway, request))).kind;
    };
    expect(await next(2)).toBe('declined');
    expect(await next(3)).toBe('succeeded');
  });

  it('reports the gateway’s own code of a decline and its advice against a retry, also in a look-up [D-30, D-42]', async ({
    harness,
    faults,
  }) => {
    const request = await chargeRequest(harness);
    await faults.decline(request.subscriptionId, 'insufficient_funds', 1, 'never');
    const outcome = await harness.gateway.charge(request);
    expect(outcome).toMatchObject({
      kind: 'declined',
      code: 'insufficient_funds',
      gatewayCode: 'insufficient_funds',
      advice: { kind: 'never' },
    });
    expect(await harness.gateway.charge(request)).toEqual(outcome);
    expect(await harness.gateway.lookup(request)).toEqual(outcome);
  });
}
