import type { Locale } from '../../../../domain/locales.ts';
import type { Answer, ApiEnvironment } from '../../api-environment.ts';
import { makeLink, makePaymentLink, openLink } from '../links.ts';
import { browse } from '../visits.ts';
import type { PageStates } from './page-servers.ts';
import { WRONG_DETAILS } from './steps.ts';

/** The page of a link after its form was sent five times from one IP address, each time by a new browser. */
async function busyLink(api: ApiEnvironment, locale: Locale): Promise<Answer> {
  const path = await makeLink(api, { locale, multiUseLimit: 10 });
  const address = '203.0.113.200';
  for (let use = 0; use < 5; use += 1) await (await openLink(api, path, { address })).submit();
  return (await openLink(api, path, { address })).submit();
}

/** Each state of the page of a link. */
export const LINK_STATES: PageStates = {
  'link: details': async ({ test }, locale) =>
    (await openLink(test, await makeLink(test, { locale, customerDetails: {} }))).page,
  'link: mistyped details': async ({ test }, locale) =>
    (await openLink(test, await makeLink(test, { locale, customerDetails: {} }))).submit(
      WRONG_DETAILS,
    ),
  'link: payment': async ({ test }, locale) =>
    (await openLink(test, await makePaymentLink(test, { locale }))).page,
  'link: gone': async ({ test }, locale) =>
    browse(test, '/l/unknown', { headers: { 'accept-language': locale } }),
  'link: busy': ({ test }, locale) => busyLink(test, locale),
};
