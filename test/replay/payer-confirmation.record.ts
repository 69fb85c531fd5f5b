import { describe, expect, vi } from 'vitest';
import { onAskingBank } from '../support/asking-bank.ts';
import { submitForm } from '../support/stripe.ts';
import { keepSubscription, recorderOn, send } from './recorder.ts';

/** Records histories of subscriptions with a payment that the payer must confirm with the bank. */

const record = recorderOn(onAskingBank);

describe('record', () => {
  record('payer-confirmation', async ({ env, owing }) => {
    const { ref, clock, payerUrl, settled, passTwentyMinutes, giveAnotherCard } = await owing();
    const confirm = async (nth: string, outcome: string) => {
      await send(env, ref, { kind: 'authenticatePayment', checkoutSessionId: 'cs_1' }, nth).catch(
        () => undefined,
      );
      await submitForm((await payerUrl()) ?? '', { outcome });
      await env.workflows.recheck(ref);
      return settled();
    };
    expect(await confirm('1', 'fail')).toMatchObject({ status: 'UNPAID' });
    expect(await confirm('2', 'complete')).toMatchObject({ status: 'ACTIVE', cyclesCharged: 1 });
    await env.advance(clock, '2027-02-17T00:00:00Z');
    await send(env, ref, { kind: 'authenticatePayment', checkoutSessionId: 'cs_1' }, '3');
    await passTwentyMinutes();
    expect(await settled()).toMatchObject({ status: 'UNPAID', cyclesCharged: 1 });
    await send(env, ref, { kind: 'authenticatePayment', checkoutSessionId: 'cs_1' }, '4');
    await giveAnotherCard();
    await vi.waitFor(async () => expect((await env.state(ref)).status).toBe('ACTIVE'), 30_000);
    await env.advance(clock, '2027-03-17T00:00:00Z');
    expect(await keepSubscription(env, 'payer-confirmation', ref)).toBeGreaterThan(0);
  });

  record('payer-confirmation-cancelled', async ({ env, owing }) => {
    const { ref, settled } = await owing();
    await send(env, ref, { kind: 'authenticatePayment', checkoutSessionId: 'cs_1' });
    await send(env, ref, { kind: 'cancel', reason: 'cancelled' });
    expect(await settled()).toMatchObject({ status: 'ENDED', cyclesCharged: 0 });
    expect(await keepSubscription(env, 'payer-confirmation-cancelled', ref)).toBeGreaterThan(0);
  });
});
