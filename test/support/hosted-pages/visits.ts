import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { checkoutSessions } from '../../../db/schema/checkout-sessions.ts';
import type { Answer, ApiEnvironment, CallOptions } from '../api-environment.ts';
import { fieldsOf } from './page-text.ts';

export const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

/** Sends a browser's request, without credentials. */
export const browse = (api: ApiEnvironment, path: string, options?: CallOptions, method = 'GET') =>
  api.call(method, path, { as: null, ...options });

/** Requests the return URL of a page, as the tokeniser redirects the browser. */
export const comeBack = (api: ApiEnvironment, path: string, query: string) =>
  browse(api, `${path}/return?${query}`);

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

/** A payer's browser on one hosted page. */
export interface Visit {
  /** The page's token, the last segment of its path. */
  readonly token: string;
  readonly path: string;
  look(options?: CallOptions, method?: string): Promise<Answer>;
  /** Requests the return URL, as the tokeniser redirects the browser. */
  comeBack(query: string, method?: string): Promise<Answer>;
  /** Requests the return URL, expects the redirect to the page, and requests the page. */
  give(query: string): Promise<Answer>;
  /** Submits the details form with the page's form token, unless `fields` has another one. */
  post(fields: Record<string, string>, headers?: Record<string, string>): Promise<Answer>;
}

/** Opens `url`. The API must trust one proxy. Each visit has a new address unless one is given. */
export function visit(api: ApiEnvironment, url: string, address?: string): Visit {
  payers += 1;
  const from = { 'x-forwarded-for': address ?? `198.51.100.${payers}` };
  const path = new URL(url).pathname;
  const call = (method: string, at: string, { headers, ...options }: CallOptions = {}) =>
    browse(api, at, { ...options, headers: { ...from, ...headers } }, method);
  const look: Visit['look'] = (options, method = 'GET') => call(method, path, options);
  const comeBack: Visit['comeBack'] = (query, method = 'GET') =>
    call(method, `${path}/return?${query}`);
  return {
    token: path.split('/').at(-1)!,
    path,
    look,
    comeBack,
    async give(query) {
      expectSeeOther(await comeBack(query), path);
      return look();
    },
    async post(fields, headers = {}) {
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
  /<h1>(.*?)<\/h1>/.exec(text)?.[1];

/** The alert above the form after a decline, or null. */
export const alertOf = ({ text }: Answer): string | null =>
  /<p class="bad" id="declined" role="alert">(.*?)<\/p>/.exec(text)?.[1] ?? null;

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
