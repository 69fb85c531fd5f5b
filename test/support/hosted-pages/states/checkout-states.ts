import { changeSettings } from '../../../../db/repositories/merchants/settings.ts';
import { saveCard } from '../../fixtures/payments.ts';
import type { PageStates } from './page-servers.ts';
import {
  card,
  checkout,
  command,
  giveRefusedCards,
  lookLater,
  NO_DETAILS,
  paid,
  WRONG_DETAILS,
} from './steps.ts';

const BRANDING = {
  logoUrl: 'https://shop.example/logo.svg',
  colour: '#0b6b3a',
  termsUrl: 'https://shop.example/terms',
  supportUrl: 'https://shop.example/help',
};
const TRIAL = { trialPeriodCount: 7, trialPeriodInterval: 'DAY' };

/** Each state of the checkout page of a subscription. */
export const CHECKOUT_STATES: PageStates = {
  'checkout: details': async ({ test }, locale) =>
    (await checkout(test, locale, NO_DETAILS)).look(),
  'checkout: mistyped details': async ({ test }, locale) =>
    (await checkout(test, locale, NO_DETAILS)).post(WRONG_DETAILS),
  'checkout: card': async ({ test }, locale) => (await checkout(test, locale)).look(),
  'checkout: another e-mail': async ({ test }, locale) => {
    const { path, request } = await checkout(test, locale);
    return request(`${path}?email`);
  },
  'checkout: live': async ({ live }, locale) => (await checkout(live, locale)).look(),
  'checkout: trial': async ({ test }, locale) => (await checkout(test, locale, TRIAL)).look(),
  'checkout: saved card': async ({ test }, locale) => {
    const { customerId } = await saveCard(test, { gateway: 'sandbox' });
    return (await checkout(test, locale, { customerId })).look();
  },
  'checkout: brand': async ({ test }, locale) => {
    const { look } = await checkout(test, locale);
    const { merchantId } = test.merchant;
    await changeSettings(test.db, merchantId, { branding: BRANDING });
    const answer = await look();
    await changeSettings(test.db, merchantId, { branding: {} });
    return answer;
  },
  'checkout: first amount': async ({ test }, locale) =>
    (await checkout(test, locale, { upfrontAmount: 500 })).look(),
  'checkout: mistyped card': async ({ test }, locale) => {
    const { path, request } = await checkout(test, locale);
    return request(`${path}?mistyped=numberTooShort,expiryUnreadable,cvcThree`);
  },
  'checkout: declined': async ({ test }, locale) =>
    (await checkout(test, locale)).give(card('card_declined')),
  'checkout: locked': async ({ live }, locale) => {
    const opened = await checkout(live, locale);
    await giveRefusedCards(opened, 5);
    return opened.look();
  },
  'checkout: processing': async ({ test }, locale) =>
    (await checkout(test, locale)).comeBack(card('unknown')),
  'checkout: paid': async ({ test }, locale) => (await paid(test, locale)).look(),
  'checkout: trial started': async ({ test }, locale) => (await paid(test, locale, TRIAL)).look(),
  'checkout: only payment': async ({ test }, locale) =>
    (await paid(test, locale, { cycleCount: 1 })).look(),
  'checkout: ended after payments': async ({ test }, locale) => {
    const ended = await paid(test, locale);
    await command(test, 'cancel', ended);
    return ended.look();
  },
  'checkout: paused': async ({ test }, locale) => {
    const paused = await paid(test, locale);
    await command(test, 'pause', paused);
    return paused.look();
  },
  'checkout: expired': async ({ live }, locale) =>
    lookLater(live, await checkout(live, locale), 25),
  'checkout: cancelled': async ({ test }, locale) => {
    const cancelled = await checkout(test, locale);
    await command(test, 'cancel', cancelled);
    return cancelled.look();
  },
};
