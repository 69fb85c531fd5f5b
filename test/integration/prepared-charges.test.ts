import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { collect } from '../../activities/charging/charge-exchange.ts';
import type { SendLimits } from '../../activities/charging/gateway-exchange.ts';
import { markSending, recordUndecided } from '../../db/repositories/subscriptions/attempts.ts';
import { openPaymentAttempt } from '../../db/repositories/payments/charges.ts';
import { paymentAttempts } from '../../db/schema/payments.ts';
import { GatewayRejectedRequest } from '../../gateways/port.ts';
import type { PaymentGateway } from '../../gateways/port.ts';
import { oneGateway } from '../support/one-gateway.ts';
import { onDevServer as test } from '../support/environment.ts';
import type { Payments } from '../support/payments.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/** Charges at a gateway that prepares each charge, and can withdraw it. The sandbox executes the charges. */

interface Calls {
  readonly made: string[];
  /** True: the next preparation gets no answer, and the gateway does not prepare the charge. */
  losesPreparation: boolean;
  /** True: the gateway makes each charge, and its answers are lost. */
  losesAnswer: boolean;
}

function preparingGateway(env: TestEnvironment) {
  const withdrawn = new Set<string>();
  const calls: Calls = {
    made: [],
    losesPreparation: false,
    losesAnswer: false,
  };
  let prepared = 0;
  const gateway: PaymentGateway = {
    ...env.gateway,
    prepare: async () => {
      calls.made.push('prepare');
      const isLost = calls.losesPreparation;
      calls.losesPreparation = false;
      if (isLost) return { kind: 'unknown', reason: 'the answer was lost' };
      prepared += 1;
      return { kind: 'prepared', gatewayChargeId: `pi_${prepared}` };
    },
    charge: async (request) => {
      calls.made.push(`charge ${request.gatewayChargeId}`);
      if (withdrawn.has(request.gatewayChargeId ?? '')) {
        throw new GatewayRejectedRequest(400, 'charge_withdrawn');
      }
      const outcome = await env.gateway.charge(request);
      return calls.losesAnswer ? { kind: 'unknown', reason: 'the answer was lost' } : outcome;
    },
    lookup: async (charge) => {
      calls.made.push(`look up ${charge.gatewayChargeId}`);
      return env.gateway.lookup(charge);
    },
    withdraw: async (charge) => {
      calls.made.push(`withdraw ${charge.gatewayChargeId}`);
      const found = await env.gateway.lookup(charge);
      if (found.kind === 'succeeded' || found.kind === 'declined') return found;
      withdrawn.add(charge.gatewayChargeId ?? '');
      return { kind: 'withdrawn' };
    },
  };
  return { gateway, calls };
}

/** Opens the attempt of a charge of 50.00 USD with a saved card. Nothing is sent yet. */
async function opened(env: TestEnvironment, payments: Payments) {
  const ref = await payments.tokenised();
  const turn = await openPaymentAttempt(env.db, { ...ref, token: null }, null, Date.now());
  if (turn.kind !== 'goOn') throw new Error('no attempt was opened');
  const { gateway, calls } = preparingGateway(env);
  const row = async () => {
    const [attempt] = await env.db
      .select()
      .from(paymentAttempts)
      .where(eq(paymentAttempts.id, turn.attempt.id));
    if (!attempt) throw new Error('no attempt');
    return attempt;
  };
  const collected = async (limits: Partial<SendLimits> = {}) =>
    collect(
      {
        db: env.db,
        gateways: oneGateway(gateway),
        sendBudget: { newSendsForMs: 0, pauseMs: 1 },
      },
      await row(),
      { subscriptionId: null, cycleNumber: null },
      { stopAt: 0, lookups: 0, realNowAt: Date.now(), ...limits },
    );
  const book = () => payments.book(ref);
  return { attempt: turn.attempt, calls, row, collected, book };
}

describe('a charge at a gateway that prepares charges', () => {
  test('is prepared anew, without a look-up, when its preparation got no answer [D-40]', async ({
    env,
    payments,
  }) => {
    const { calls, row, collected, book } = await opened(env, payments);
    calls.losesPreparation = true;
    expect(await collected()).toMatchObject({ kind: 'unsent' });
    expect(await row()).toMatchObject({ state: 'SENDING', gatewayChargeId: null });
    expect(await book()).toEqual([]);
    expect(await collected()).toMatchObject({ kind: 'succeeded' });
    expect(calls.made).toEqual(['prepare', 'prepare', 'charge pi_1']);
    expect(await book()).toEqual(['succeeded 5000 x1']);
  });

  test('has one instant for its send, and another for a send that follows [D-57]', async ({
    env,
    payments,
  }) => {
    const { attempt, calls, row, collected, book } = await opened(env, payments);
    expect(await collected({ isFresh: true })).toMatchObject({ kind: 'succeeded' });
    expect(calls.made).toEqual(['prepare', 'charge pi_1']);
    expect((await row()).sentAt).toHaveLength(1);
    await markSending(env.db, attempt, null);
    expect((await row()).sentAt).toHaveLength(2);
    expect(await book()).toEqual(['succeeded 5000 x1']);
  });

  test('is sent with the id that another process stored first [D-40]', async ({
    env,
    payments,
  }) => {
    const { attempt, calls, row, collected, book } = await opened(env, payments);
    await markSending(env.db, attempt, 'pi_first');
    expect(await markSending(env.db, attempt, 'pi_second')).toEqual({
      gatewayChargeId: 'pi_first',
    });
    expect(await row()).toMatchObject({ state: 'SENDING', gatewayChargeId: 'pi_first' });
    expect(await collected()).toMatchObject({ kind: 'succeeded' });
    expect(calls.made).toEqual(['look up pi_first', 'charge pi_first']);
    expect(await book()).toEqual(['succeeded 5000 x1']);
  });

  test('can no longer be made when it is voided after it was prepared [D-§4]', async ({
    env,
    payments,
  }) => {
    const { attempt, calls, collected, book } = await opened(env, payments);
    await markSending(env.db, attempt, 'pi_stalled');
    expect(await collected({ isVoided: true })).toEqual({
      kind: 'declined',
      code: 'processing_error',
      gatewayChargeId: null,
      isWithdrawn: true,
      isProven: true,
      withoutOutcome: 0,
    });
    // The stalled process sends its request now.
    const late = await collected();
    expect(late).toEqual({
      kind: 'review',
      reason: 'the gateway refused the request: 400 charge_withdrawn',
      withoutOutcome: 2,
    });
    expect(calls.made).toEqual(['withdraw pi_stalled', 'look up pi_stalled', 'charge pi_stalled']);
    expect(await book()).toEqual([]);
  });

  test('is settled as paid when it is voided after a stalled worker sent it, while another found that nothing was sent [D-46, D-§4]', async ({
    env,
    payments,
  }) => {
    const { attempt, calls, row, collected, book } = await opened(env, payments);
    calls.losesPreparation = true;
    const unsent = await collected();
    if (unsent.kind !== 'unsent') throw new Error(`the charge was ${unsent.kind}`);
    // The stalled worker goes on before the other one records what it found.
    await markSending(env.db, attempt, 'pi_stalled');
    calls.losesAnswer = true;
    expect(await collected()).toMatchObject({ kind: 'unknown' });
    await recordUndecided(env.db, attempt, unsent);
    expect(await row()).toMatchObject({ state: 'UNSENT', gatewayChargeId: 'pi_stalled' });
    expect(await collected({ isVoided: true })).toMatchObject({ kind: 'succeeded' });
    expect(calls.made).toEqual([
      'prepare',
      'look up pi_stalled',
      'charge pi_stalled',
      'withdraw pi_stalled',
    ]);
    expect(await book()).toEqual(['succeeded 5000 x1']);
  });

  test('is watched when it is voided while nothing was sent, because a stalled worker may still send it [D-46, D-§4]', async ({
    env,
    payments,
  }) => {
    const { attempt, calls, collected, book } = await opened(env, payments);
    calls.losesPreparation = true;
    const unsent = await collected();
    if (unsent.kind !== 'unsent') throw new Error(`the charge was ${unsent.kind}`);
    await recordUndecided(env.db, attempt, unsent);
    expect(await collected({ isVoided: true })).toEqual({
      kind: 'declined',
      code: 'processing_error',
      gatewayChargeId: null,
      isWithdrawn: true,
      withoutOutcome: 0,
    });
    expect(calls.made).toEqual(['prepare']);
    expect(await book()).toEqual([]);
  });

  test('is settled as paid when it is voided after the gateway made it [D-§4]', async ({
    env,
    payments,
  }) => {
    const { calls, collected, book } = await opened(env, payments);
    calls.losesAnswer = true;
    expect(await collected()).toMatchObject({ kind: 'unknown' });
    expect(await collected({ isVoided: true })).toMatchObject({ kind: 'succeeded' });
    expect(calls.made).toEqual(['prepare', 'charge pi_1', 'withdraw pi_1']);
    expect(await book()).toEqual(['succeeded 5000 x1']);
  });
});
