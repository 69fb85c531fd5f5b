import { payerPath } from '../../../runtime/payer-links.ts';
import type { Answer, ApiEnvironment } from '../api-environment.ts';
import { fieldsOf } from './page-text.ts';
import { browse, postForm } from './visits.ts';

/** Gives a customer a link to the own page, and opens it in a browser. */
export async function openPortal(
  api: ApiEnvironment,
  customerId: string,
  { locale = 'en', returnUrl }: { locale?: string; returnUrl?: string } = {},
) {
  const body = { customerId, ...(returnUrl !== undefined && { returnUrl }) };
  const made = await api.call('POST', '/customer/portal', { body });
  const { url, expiresAt } = made.json as { url: string; expiresAt: number };
  const path = new URL(url).pathname;
  const language = { 'accept-language': locale };
  const first = await browse(api, path, { headers: language });
  const form_token = tokenOf(first);
  const cookie = String(first.headers['set-cookie']).split(';')[0] ?? '';
  const headers = { ...language, cookie };
  const click = () => postForm(api, path, { form_token }, headers);
  const taken = await click();
  const look = (at = '') => browse(api, path + at, { headers });
  return {
    path,
    expiresAt,
    first,
    taken,
    /** Presses the button of the first page again. */
    click,
    look,
    /** Sends the form of a button. */
    press: (at: string) => postForm(api, path + at, { form_token }, headers),
  };
}

let payers = 0;

/** Opens the page on which a payer asks for a link to the own page, from a new IP address. */
export async function askForPortal(api: ApiEnvironment, { locale = 'en' } = {}) {
  payers += 1;
  const path = payerPath(api.merchant.merchantId);
  const headers = { 'accept-language': locale, 'x-forwarded-for': `192.0.3.${payers}` };
  const page = await browse(api, path, { headers });
  const post = (fields: Record<string, string>, more: Record<string, string> = {}) =>
    postForm(api, path, fields, { ...headers, ...more });
  return {
    path,
    page,
    post,
    /** Sends the form, and follows the redirect. */
    async ask(email: string): Promise<Answer> {
      const answer = await post({ form_token: tokenOf(page), email });
      if (answer.status !== 303) return answer;
      return browse(api, String(answer.headers['location']), { headers });
    },
  };
}

/** Gives the merchant an endpoint that takes the requests. Returns its id. */
export async function takePortalRequests(api: ApiEnvironment): Promise<string> {
  const { json } = await api.call('POST', '/webhook', {
    body: {
      endpoint: 'https://merchant.example/hook',
      eventSigner: 'whsec_dGhlIHRlc3Qgc2hvcCBzaWducyB3aXRoIHRoaXM=',
      subscribedEventTypes: ['customer.portal_requested'],
    },
  });
  return (json as { webhookConfigId: string }).webhookConfigId;
}

const tokenOf = ({ text }: Answer): string =>
  fieldsOf(text).find(({ name }) => name === 'form_token')?.value ?? '';
