import { postForm } from '../visits.ts';
import type { Visit } from '../visits.ts';
import type { Answer, ApiEnvironment } from '../../api-environment.ts';
import { NO_ANSWER } from './page-servers.ts';
import type { PageStates } from './page-servers.ts';
import { checkout, formTokenOf, refusal } from './steps.ts';

/** Presses the button of our page that leads to Stripe's page. */
async function press(api: ApiEnvironment, opened: Visit): Promise<Answer> {
  return postForm(api, `${opened.path}/card`, { form_token: await formTokenOf(opened) });
}

/** Each state of our page that leads to the gateway's own card page, and the page of a merchant without a gateway. */
export const GATEWAY_STATES: PageStates = {
  'Stripe: checkout': async ({ stripe }, locale) => (await checkout(stripe, locale)).look(),
  'Stripe: declined': async ({ stripe }, locale) =>
    (await checkout(stripe, locale)).give(refusal()),
  'Stripe: no page': async ({ stripe, entry }, locale) => {
    entry.outcome = NO_ANSWER;
    return press(stripe, await checkout(stripe, locale));
  },
  'Stripe: leave': async ({ stripe, entry }, locale) => {
    entry.outcome = { kind: 'redirect', url: 'https://stripe.example/card' };
    return press(stripe, await checkout(stripe, locale));
  },
  'no gateway': async ({ stripe, entry }, locale) => {
    const { look } = await checkout(stripe, locale);
    entry.isRemoved = true;
    const answer = await look();
    entry.isRemoved = false;
    return answer;
  },
};
