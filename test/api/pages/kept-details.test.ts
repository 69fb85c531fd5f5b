import { describe, expect } from 'vitest';
import { test } from '../../support/api-environment.ts';
import type { Answer, ApiEnvironment } from '../../support/api-environment.ts';
import { intentBody, setupBody } from '../../support/fixtures/payments.ts';
import { createSubscription } from '../../support/fixtures/subscriptions.ts';
import { makeLink } from '../../support/hosted-pages/links.ts';
import { fieldsOf } from '../../support/hosted-pages/page-text.ts';
import { browse, expectSeeOther, postForm } from '../../support/hosted-pages/visits.ts';

async function make(api: ApiEnvironment, at: string, body: object): Promise<string> {
  const { json } = await api.call('POST', at, { body });
  return new URL((json as { fwdUrl: string }).fwdUrl).pathname;
}

/** The path of a new page of each kind that asks for name and e-mail. */
const KINDS: Record<string, (api: ApiEnvironment) => Promise<string>> = {
  checkout: async (api) =>
    new URL((await createSubscription(api, { customerDetails: {} })).fwdUrl).pathname,
  payment: (api) => make(api, '/payments/create-intent', intentBody({ customerDetails: {} })),
  setup: (api) => make(api, '/setup-method/create', setupBody({ billingDetails: {} })),
  link: (api) => makeLink(api, { customerDetails: {} }),
};

const WRONG = { name: 'Ada "A" Exámple', email: 'ada@' };

/** A browser with cookies on one page. */
async function openBrowser(api: ApiEnvironment, path: string) {
  const jar = new Map<string, string>();
  const keep = (answer: Answer): Answer => {
    for (const line of [answer.headers['set-cookie'] ?? []].flat()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '') jar.delete(name);
      else jar.set(name, value);
    }
    return answer;
  };
  const headers = () => ({ cookie: [...jar].map((pair) => pair.join('=')).join('; ') });
  const look = async () => keep(await browse(api, path, { headers: headers() }));
  const hidden = fieldsOf((await look()).text).filter(({ label }) => label === undefined);
  const fields = Object.fromEntries(hidden.map(({ name, value = '' }) => [name, value]));
  return {
    jar,
    look,
    submit: async (typed: Record<string, string>) =>
      keep(await postForm(api, path, { ...fields, ...typed }, headers())),
  };
}

const typedOf = (page: Answer) =>
  fieldsOf(page.text)
    .filter(({ label }) => label !== undefined)
    .map(({ value }) => value);

describe.each(Object.entries(KINDS))('mistyped details on the %s page', (_kind, makePage) => {
  test('are shown again after a redirect, from an encrypted cookie, until they are right [D-11]', async ({
    api,
  }) => {
    const path = await makePage(api);
    const { look, submit, jar } = await openBrowser(api, path);
    const sent = await submit(WRONG);
    expectSeeOther(sent, path);
    expect(String(sent.headers['set-cookie'])).toMatch(
      /^typed=[\w-]+; Path=(\/[\w/.-]+); Max-Age=600; HttpOnly; SameSite=Lax; Secure$/,
    );
    expect(String(sent.headers['set-cookie'])).toContain(`Path=${path};`);
    expect(Buffer.from(jar.get('typed')!, 'base64url').toString('latin1')).not.toContain('ada@');
    // A reload shows the same.
    for (const page of [await look(), await look()]) {
      expect(page.status).toBe(200);
      expect(page.text).toContain('<title>Error: ');
      expect(typedOf(page)).toEqual(['Ada &quot;A&quot; Exámple', 'ada@']);
      expect(page.text.match(/<p class="problem"/g)).toHaveLength(1);
    }

    const right = await submit({ ...WRONG, email: 'ada@example.com' });
    expect(right.status).toBe(303);
    expect(String(right.headers['set-cookie'])).toMatch(/^typed=; Path=.*; Max-Age=0; HttpOnly/);
    expect(jar.has('typed')).toBe(false);
    const lines = JSON.stringify(api.logLines);
    expect(lines).not.toContain('Exámple');
    expect(lines).not.toContain('ada@');
  });

  test('are shown with 400 to a browser without cookies, and when they are too long for a cookie [D-11]', async ({
    api,
  }) => {
    const path = await makePage(api);
    const kept = await openBrowser(api, path);
    const long = await kept.submit({ name: 'Ada', email: 'a'.repeat(4_000) });
    kept.jar.clear();
    const withoutCookies = await kept.submit(WRONG);
    for (const page of [long, withoutCookies]) {
      expect(String(page.headers['set-cookie'])).not.toContain('typed=');
      expect(page.status).toBe(400);
      expect(page.text).toContain('<title>Error: ');
      expect(page.text).toContain('id="email-problem"');
    }
    expect(typedOf(withoutCookies)).toEqual(['Ada &quot;A&quot; Exámple', 'ada@']);
  });

  test('are not shown from a changed cookie, nor from the cookie of another page', async ({
    api,
  }) => {
    const [own, other] = [
      await openBrowser(api, await makePage(api)),
      await openBrowser(api, await makePage(api)),
    ];
    await other.submit(WRONG);
    for (const value of [other.jar.get('typed')!, `${other.jar.get('typed')!}AAAA`, 'AQ', '%00']) {
      own.jar.set('typed', value);
      const page = await own.look();
      expect([page.status, typedOf(page)]).toEqual([200, [undefined, undefined]]);
    }
  });
});
