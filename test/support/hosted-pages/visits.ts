import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { checkoutSessions } from '../../../db/schema/checkouts.ts';
import { returnUrl } from '../../../api/pages/shared/own-requests.ts';
import { PUBLIC_URL, SESSION_KEY } from '../api-environment.ts';
import type { Answer, ApiEnvironment, CallOptions } from '../api-environment.ts';
import { fieldsOf } from './page-text.ts';

export const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

/** Sends a browser's request, without credentials. */
export const browse = (api: ApiEnvironment, path: string, options?: CallOptions, method = 'GET') =>
  api.call(method, path, { as: null, ...options });

/** The browser id of every payer in the API tests. */
const BROWSER = 'payer00of00api00tests0';

/** The return URL with the tokeniser's `query` and the state of the browser that has the card form. */
export function ownReturn(path: string, query: string): string {
  const signer = { publicUrl: PUBLIC_URL, sessionKey: SESSION_KEY };
  const { pathname, searchParams } = new URL(returnUrl(signer, path, BROWSER));
  return `${pathname}?${query}&${searchParams.toString()}`;
}

/**
 * Requests the return URL of a page, as the browser with the card form does after the tokeniser's redirect.
 */
export const comeBack = (
  api: ApiEnvironment,
  path: string,
  query: string,
  { headers = {}, method = 'GET' }: { headers?: Record<string, string>; method?: string } = {},
) => {
  const options = { headers: { cookie: `payer=${BROWSER}`, ...headers } };
  return browse(api, ownReturn(path, query), options, method);
};

/** Matches the return URL of the card form at `path`. */
export const ownReturnUrl = (path: string) =>
  expect.stringMatching(new RegExp(`^${PUBLIC_URL}${path}/return\\?state=[\\w-]{43}$`)) as string;

/** The state in the return URL of a page's card form, and the cookie that the page set. */
export function returnOf(page: Answer) {
  const url = fieldsOf(page.text).find(({ name }) => name === 'return_url')?.value ?? '';
  const [cookie = '', ...attributes] = String(page.headers['set-cookie']).split('; ');
  return { state: new URL(url).searchParams.get('state') ?? '', cookie, attributes };
}

/** Submits a form with these fields. */
export const postForm = (
  api: ApiEnvironment,
  path: string,
  fields: Record<string, string>,
  headers: Record<string, string> = {},
) => {
  const raw = new URLSearchParams(fields).toString();
  return browse(api, path, { raw, headers: { ...FORM, ...headers } }, 'POST');
};

let payers = 0;

export type Visit = ReturnType<typeof visit>;

/**
 * Returns the visit of a payer to the hosted page at `url`, and sends no request. The API must trust one proxy. Each
 * visit has a new IP address unless `address` is given.
 */
export function visit(api: ApiEnvironment, url: string, address?: string) {
  payers += 1;
  const from = { 'x-forwarded-for': address ?? `198.51.100.${payers}` };
  const path = new URL(url).pathname;
  const outcomeAt = path.startsWith('/update-method/') ? `${path}?outcome` : path;
  /** Sends a request from the visit's address, without cookies. */
  const request = (at: string, { headers, ...options }: CallOptions = {}, method = 'GET') =>
    browse(api, at, { ...options, headers: { ...from, ...headers } }, method);
  /** Requests the page. */
  const look = (options?: CallOptions, method?: string) => request(path, options, method);
  /** Requests the return URL, as the browser with the card form does after the tokeniser's redirect. */
  const comeBackHere = (query: string, method = 'GET') =>
    comeBack(api, path, query, { headers: from, method });
  return {
    /** The page's token, the last segment of its path. */
    token: path.split('/').at(-1)!,
    path,
    look,
    request,
    comeBack: comeBackHere,
    /** Requests the return URL, expects the redirect to the page, and requests the page. */
    async give(query: string) {
      const answer = await comeBackHere(query);
      expectSeeOther(answer, outcomeAt);
      return request(outcomeAt);
    },
    /** Requests the address that shows the outcome of a card. */
    lookAtOutcome: () => request(outcomeAt),
    outcomeAt,
    /** Submits the details form with the page's form token, unless `fields` has another one. */
    async post(fields: Record<string, string>, headers: Record<string, string> = {}) {
      const token = fieldsOf((await look()).text).find(({ name }) => name === 'form_token');
      const form = { ...(token?.value ? { form_token: token.value } : {}), ...fields };
      return postForm(api, path, form, { ...from, ...headers });
    },
  };
}

export function expectSeeOther(answer: Answer, path: string): void {
  expect([answer.status, answer.headers['location']]).toEqual([303, path]);
}

export const headingOf = ({ text }: Answer): string | undefined =>
  /<h1[^>]*>(.*?)<\/h1>/.exec(text)?.[1];

/** The alert above the form after a decline, or null. */
export const alertOf = ({ text }: Answer): string | null =>
  /<p class="bad" id="declined" role="alert"[^>]*>(.*?)<\/p>/.exec(text)?.[1] ?? null;

export const hasCardForm = ({ text }: Answer): boolean => text.includes('Card number');

/** The target of the page's automatic redirect. */
export const refreshOf = ({ text }: Answer): string | undefined =>
  /<meta http-equiv="refresh" content="([^"]*)"/.exec(text)?.[1]?.replaceAll('&amp;', '&');

/** The number of cards tried in a session. */
export async function triesOf(api: ApiEnvironment, sessionId: string): Promise<number | undefined> {
  const [row] = await api.db
    .select({ tries: checkoutSessions.tries })
    .from(checkoutSessions)
    .where(eq(checkoutSessions.id, sessionId));
  return row?.tries;
}

export const sessionIn = ({ text }: Answer): string =>
  fieldsOf(text).find(({ name }) => name === 'session')!.value!;
