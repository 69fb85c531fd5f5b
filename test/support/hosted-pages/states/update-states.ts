import { eq } from 'drizzle-orm';
import { paymentAttempts } from '../../../../db/schema/payments.ts';
import type { Locale } from '../../../../domain/locales.ts';
import { updateMethodLink } from '../../../../runtime/payer-links.ts';
import { PUBLIC_URL, SESSION_KEY } from '../../api-environment.ts';
import type { ApiEnvironment } from '../../api-environment.ts';
import { declineNext, readSubscription } from '../../fixtures/subscriptions.ts';
import { postForm, visit } from '../visits.ts';
import type { Visit } from '../visits.ts';
import type { PageStates } from './page-servers.ts';
import {
  card,
  checkout,
  command,
  formTokenOf,
  giveRefusedCards,
  lookLater,
  paid,
  refusal,
} from './steps.ts';
import type { Checkout } from './steps.ts';

/** Opens the page for replacing the card of a paid subscription. With a decline code, its next cycle is declined. */
async function update(
  api: ApiEnvironment,
  locale: Locale,
  code: string | null = null,
): Promise<Visit & { subscription: Checkout }> {
  const subscription = await paid(api, locale);
  if (code !== null) await declineNext(api, subscription, code);
  const { updatePaymentMethodLink } = await readSubscription(api, subscription);
  return { subscription, ...visit(api, String(updatePaymentMethodLink)) };
}

/**
 * As {@link update}; the payer has begun to confirm the owed payment, which has no outcome yet. Returns the path that
 * leads to the bank.
 */
async function confirmation(api: ApiEnvironment, locale: Locale) {
  const opened = await update(api, locale, 'authentication_required');
  const form = { form_token: await formTokenOf(opened) };
  api.workflows.faults.card = 'unknown';
  const { headers } = await postForm(api, `${opened.path}/bank`, form);
  api.workflows.faults.card = null;
  return { ...opened, bankPath: String(headers['location']) };
}

/** Each state of the page on which a payer replaces a subscription's card. */
export const UPDATE_STATES: PageStates = {
  'update: card': async ({ test }, locale) => (await update(test, locale)).look(),
  'update: payment due': async ({ test }, locale) =>
    (await update(test, locale, 'card_declined')).look(),
  'update: declined': async ({ test }, locale) => (await update(test, locale)).give(refusal()),
  'update: saved, payment declined': async ({ test }, locale) =>
    (await update(test, locale, 'card_declined')).give(card('insufficient_funds')),
  'update: last card saved': async ({ live }, locale) => {
    const opened = await update(live, locale, 'card_declined');
    await giveRefusedCards(opened, 4);
    return opened.give(card('insufficient_funds'));
  },
  'update: bank asks': async ({ stripe }, locale) =>
    (await update(stripe, locale, 'authentication_required')).look(),
  'update: confirmation begun': async ({ stripe }, locale) =>
    (await confirmation(stripe, locale)).look(),
  'update: waits for the bank': async ({ stripe }, locale) => {
    const { request, bankPath } = await confirmation(stripe, locale);
    return request(bankPath);
  },
  'update: leave for the bank': async ({ stripe }, locale) => {
    const { request, bankPath } = await confirmation(stripe, locale);
    await stripe.db
      .update(paymentAttempts)
      .set({ payerUrl: 'https://bank.example/confirm' })
      .where(eq(paymentAttempts.intentId, bankPath.split('/').at(-1)!));
    return request(bankPath);
  },
  'update: processing': async ({ test }, locale) =>
    (await update(test, locale, 'card_declined')).comeBack(card('unknown')),
  'update: replaced': async ({ test }, locale) => (await update(test, locale)).give(card('good')),
  'update: paid': async ({ test }, locale) =>
    (await update(test, locale, 'card_declined')).give(card('good')),
  'update: expired': async ({ test }, locale) =>
    lookLater(test, await update(test, locale), 24 * 32),
  'update: not begun': async ({ test }, locale) => {
    const { ref } = await checkout(test, locale);
    const signer = { publicUrl: PUBLIC_URL, sessionKey: SESSION_KEY };
    const link = updateMethodLink(signer, { ...ref, paymentMethodId: null }, Date.now());
    return visit(test, link).look();
  },
  'update: paused': async ({ test }, locale) => {
    const { subscription, look } = await update(test, locale);
    await command(test, 'pause', subscription);
    return look();
  },
  'update: ended': async ({ test }, locale) => {
    const { subscription, look } = await update(test, locale);
    await command(test, 'cancel', subscription);
    return look();
  },
};
