import { ADA, openDeclaration } from '../declarations.ts';
import { changeSettings } from '../../../../db/repositories/merchants/settings.ts';
import type { Locale } from '../../../../domain/locales.ts';
import type { ApiEnvironment } from '../../api-environment.ts';
import { askForPortal, openPortal, takePortalRequests } from '../portal.ts';
import type { PageStates } from './page-servers.ts';
import { paid } from './steps.ts';

const CONTRACT = { ...ADA, reference: 'sub_0002sSOLuQx1oB9bUeVtYw3c' };

/** The own page of a payer with one subscription. */
async function portal(api: ApiEnvironment, locale: Locale) {
  const { merchantId } = api.merchant;
  await changeSettings(api.db, merchantId, { portal: ['card', 'cancel', 'pause'] });
  const { subscriptionId } = await paid(api, locale);
  const { json } = await api.call('GET', `/subscription/get-subscription/${subscriptionId}`);
  const { customerId } = json as { customerId: string };
  return { subscriptionId, ...(await openPortal(api, customerId, { locale })) };
}

/** Each state of the pages on which a payer cancels or withdraws without login, and of a payer's own page. */
export const DECLARATION_STATES: PageStates = {
  'cancellation: form': async ({ test }, locale) =>
    (await openDeclaration(test, 'cancellation', { locale })).page,
  'cancellation: mistyped': async ({ test }, locale) =>
    (await openDeclaration(test, 'cancellation', { locale })).submit({
      name: 'Ada Example',
      email: 'ada@',
      kind: 'cause',
      endOn: '31.3.',
    }),
  'cancellation: French summary': async ({ test }) =>
    (await openDeclaration(test, 'cancellation', { locale: 'fr' })).submit(CONTRACT),
  'cancellation: received': async ({ test }, locale) =>
    (await openDeclaration(test, 'cancellation', { locale })).declare({
      ...CONTRACT,
      kind: 'cause',
      reason: 'Three letters never came.',
      endOn: '2027-03-31',
      checked: 'yes',
    }),
  'withdrawal: form': async ({ test }, locale) =>
    (await openDeclaration(test, 'withdrawal', { locale })).page,
  "payer's page: request": async ({ test }, locale) => {
    await takePortalRequests(test);
    return (await askForPortal(test, { locale })).page;
  },
  "payer's page: request sent": async ({ test }, locale) => {
    await takePortalRequests(test);
    return (await askForPortal(test, { locale })).ask('ada@example.com');
  },
  "payer's page: opening": async ({ test }, locale) => (await portal(test, locale)).first,
  "payer's page: subscription": async ({ test }, locale) => (await portal(test, locale)).look(),
  "payer's page: cancellation": async ({ test }, locale) => {
    const { look, subscriptionId } = await portal(test, locale);
    return look(`/${subscriptionId}/cancel`);
  },
  "payer's page: cancelled": async ({ test }, locale) => {
    const { look, press, subscriptionId } = await portal(test, locale);
    await press(`/${subscriptionId}/cancel`);
    return look();
  },
  'withdrawal: received': async ({ test }, locale) =>
    (await openDeclaration(test, 'withdrawal', { locale })).declare(CONTRACT),
};
