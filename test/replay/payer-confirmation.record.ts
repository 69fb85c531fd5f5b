import { describe, expect, vi } from 'vitest';
import { onAskingBank } from '../support/asking-bank.ts';
import { openPage, submitForm } from '../../tools/scripts/client/browser.ts';
import { submitForm as answerBank } from '../support/stripe.ts';
import { keepEnded, keepSubscription, recorderOn, send } from './recorder.ts';

/** Records histories of subscriptions with a payment that the payer must confirm with the bank. */

const record = recorderOn(onAskingBank);

/** Begins to confirm the owed payment with the bank. */
async function begin(link: string): Promise<void> {
  const page = await openPage(link);
  const form = page.forms.find(({ button }) => button === 'Confirm with your bank');
  if (!form) throw new Error(`no confirmation is offered: ${page.html}`);
  const leave = await submitForm(page, form, {});
  expect(leave.title).toBe('Continue to your bank');
}

describe('record', () => {
  record('payer-confirmation', async ({ env, owing }) => {
    const { ref, clock, link, payerUrl, settled, passTwentyMinutes, giveAnotherCard } =
      await owing();
    const confirm = async (outcome: string) => {
      await begin(link);
      await answerBank((await payerUrl()) ?? '', { outcome });
      await env.workflows.recheck(ref);
      return settled();
    };
    expect(await confirm('fail')).toMatchObject({ status: 'UNPAID' });
    expect(await confirm('complete')).toMatchObject({ status: 'ACTIVE', cyclesCharged: 1 });
    await env.advance(clock, '2027-02-17T00:00:00Z');
    await begin(link);
    await passTwentyMinutes();
    expect(await settled()).toMatchObject({ status: 'UNPAID', cyclesCharged: 1 });
    await begin(link);
    await giveAnotherCard();
    await vi.waitFor(async () => expect((await env.state(ref)).status).toBe('ACTIVE'), 30_000);
    await env.advance(clock, '2027-03-17T00:00:00Z');
    expect(await keepSubscription(env, 'payer-confirmation', ref)).toBeGreaterThan(0);
  });

  record('payer-confirmation-cancelled', async ({ env, owing }) => {
    const { ref, link, settled } = await owing();
    await begin(link);
    await send(env, ref, { kind: 'cancel', reason: 'cancelled' });
    expect(await settled()).toMatchObject({ status: 'ENDED', cyclesCharged: 0 });
    expect(await keepEnded(env, 'payer-confirmation-cancelled', ref)).toBeGreaterThan(0);
  });
});
