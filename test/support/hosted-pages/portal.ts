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

const tokenOf = ({ text }: Answer): string =>
  fieldsOf(text).find(({ name }) => name === 'form_token')?.value ?? '';
