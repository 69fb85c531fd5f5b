import type { Locale } from '../../../../domain/locales.ts';
import { PUBLIC_URL } from '../../api-environment.ts';
import type { Answer } from '../../api-environment.ts';
import { postForm, visit } from '../visits.ts';
import type { PageServers, PageStates } from './page-servers.ts';
import { card, checkout, HOUR_MS, NO_DETAILS, payment, refusal } from './steps.ts';

/** The page at 13:05 UTC for a payer from whose IP address too many cards were declined. */
async function tooMany({ live }: PageServers, locale: Locale): Promise<Answer> {
  const address = '203.0.113.201';
  for (let page = 0; page < 6; page += 1) {
    const { comeBack } = await payment(live, locale, address);
    for (let tried = 0; tried < 5; tried += 1) await comeBack(refusal());
  }
  const { look } = await payment(live, locale, address);
  // The payment's page expires after a day, so the clock is set less than a day ahead.
  live.clock.aheadMs = (Date.UTC(2200, 0, 1, 13, 5, 40) - Date.now()) % (24 * HOUR_MS);
  const answer = await look();
  live.clock.aheadMs = 0;
  return answer;
}

/** Each page that a payer gets if the request is refused or cannot be answered. */
export const REFUSAL_STATES: PageStates = {
  'unknown page': ({ test }, locale) =>
    visit(test, `${PUBLIC_URL}/checkout/none`).look({ headers: { 'accept-language': locale } }),
  'too many tries': tooMany,
  'one more step': async ({ test }, locale) => {
    const { request, path } = await checkout(test, locale);
    return request(`${path}/return?payment_token=tok_without_cookie`);
  },
  'form of another site': async ({ test }, locale) =>
    (await checkout(test, locale, NO_DETAILS)).post({ form_token: 'guessed' }),
  'page in a page': async ({ test }, locale) =>
    (await checkout(test, locale)).look({
      headers: {
        'accept-language': locale,
        'sec-fetch-site': 'cross-site',
        'sec-fetch-dest': 'iframe',
      },
    }),
  'unreadable form': async ({ test }, locale) => {
    const { path } = await checkout(test, locale, NO_DETAILS);
    const form = { name: 'x'.repeat(10_000) };
    return postForm(test, path, form, { 'accept-language': locale });
  },
  unavailable: async ({ test }, locale) => {
    const { comeBack } = await checkout(test, locale);
    test.workflows.faults.isDown = true;
    const answer = await comeBack(card('good'));
    test.workflows.faults.isDown = false;
    return answer;
  },
};
