import type { Locale } from '../../../../domain/locales.ts';
import type { ApiEnvironment } from '../../api-environment.ts';
import { setupBody } from '../../fixtures/payments.ts';
import { visit } from '../visits.ts';
import type { Visit } from '../visits.ts';
import type { PageStates } from './page-servers.ts';
import { card, lookLater, payment, refusal } from './steps.ts';

async function setup(api: ApiEnvironment, locale: Locale): Promise<Visit> {
  const made = await api.call('POST', '/setup-method/create', { body: setupBody({ locale }) });
  return visit(api, (made.json as { fwdUrl: string }).fwdUrl);
}

/** Each state of the page of a single payment, and of the page that saves a card. */
export const ORDER_STATES: PageStates = {
  'payment: card': async ({ test }, locale) => (await payment(test, locale)).look(),
  'payment: declined': async ({ test }, locale) => (await payment(test, locale)).give(refusal()),
  'payment: processing': async ({ test }, locale) =>
    (await payment(test, locale)).comeBack(card('unknown')),
  'payment: paid': async ({ test }, locale) => (await payment(test, locale)).give(card('good')),
  'payment: refunded': async ({ test }, locale) => {
    const { xIntentId, give, look } = await payment(test, locale);
    await give(card('good'));
    await test.call('POST', '/payments/merchant/refund', { body: { xIntentId } });
    return look();
  },
  'payment: expired': async ({ live }, locale) => lookLater(live, await payment(live, locale), 25),
  'payment: cancelled': async ({ test }, locale) => {
    const { xIntentId, look } = await payment(test, locale);
    await test.call('POST', `/payments/cancel/${xIntentId}`);
    return look();
  },
  'setup: card': async ({ test }, locale) => (await setup(test, locale)).look(),
  'setup: declined': async ({ test }, locale) => (await setup(test, locale)).give(refusal()),
  'setup: saved': async ({ test }, locale) => (await setup(test, locale)).give(card('good')),
  'setup: expired': async ({ live }, locale) => lookLater(live, await setup(live, locale), 25),
};
