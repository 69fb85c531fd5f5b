import { describe, expect } from 'vitest';
import { subscriptionBody, test } from '../../support/api-environment.ts';
import type { Answer, ApiEnvironment } from '../../support/api-environment.ts';
import { intentBody, makeCustomer, saveCard, setupBody } from '../../support/fixtures/payments.ts';
import { makeLink, openLink } from '../../support/hosted-pages/links.ts';
import { fieldsOf } from '../../support/hosted-pages/page-text.ts';
import { expectSeeOther, postForm, visit } from '../../support/hosted-pages/visits.ts';

const ADA = { name: 'Ada Example', email: 'ada@example.com' };

interface Order {
  readonly at: string;
  readonly body: (changes: Record<string, unknown>) => object;
  /** The field with the payer's details. */
  readonly field: 'customerDetails' | 'billingDetails';
}

const ORDERS: Record<string, Order> = {
  checkout: { at: '/subscription/create', body: subscriptionBody, field: 'customerDetails' },
  payment: { at: '/payments/create-intent', body: intentBody, field: 'customerDetails' },
  setup: { at: '/setup-method/create', body: setupBody, field: 'billingDetails' },
};

async function open(api: ApiEnvironment, { at, body, field }: Order, changes: object = {}) {
  const made = await api.call('POST', at, { body: body({ [field]: ADA, ...changes }) });
  const { fwdUrl } = made.json as { fwdUrl: string };
  const page = visit(api, fwdUrl);
  const changePath = `${page.path}?email`;
  return {
    ...page,
    changePath,
    /** Sends the form for the change, from a browser with cookies. */
    async change(email: string) {
      const [token] = fieldsOf((await page.request(changePath)).text);
      return postForm(
        api,
        changePath,
        { form_token: token?.value ?? '', email },
        { cookie: 'payer=1' },
      );
    },
  };
}

/** The e-mail that the card page shows; undefined without one. */
const shownEmail = ({ text }: Answer): string | undefined => /<bdi>([^<]*)<\/bdi>/.exec(text)?.[1];

/** E-mails of all records with one of these addresses, found by the lists' filter. */
async function recordsWith(api: ApiEnvironment, email: string): Promise<string[]> {
  const lists = ['/customer', '/subscription', '/payments'];
  const answers = await Promise.all(
    lists.map((list) => api.call('GET', `${list}?email=${encodeURIComponent(email)}`)),
  );
  return answers.flatMap(({ json }, index) =>
    (json as { data: unknown[] }).data.map(() => lists[index]!),
  );
}

describe.each(Object.entries(ORDERS))('the e-mail on the %s page', (kind, order) => {
  test('is shown, and the payer can change it before the card [D-11]', async ({ api }) => {
    const { path, look, request, changePath, change } = await open(api, order);
    expect(shownEmail(await look())).toBe('ada@example.com');
    expect((await look()).text).toContain(`<a href="${changePath}">Change e-mail address</a>`);
    const form = await request(changePath);
    expect(form.text).toContain(`<form method="post" action="${changePath}">`);
    expect(fieldsOf(form.text).slice(1)).toEqual([
      { name: 'email', label: 'E-mail address', autocomplete: 'email', value: 'ada@example.com' },
    ]);

    const wrong = await change('ada@');
    expectSeeOther(wrong, changePath);
    const [cookie = ''] = /typed=[^;]+/.exec(String(wrong.headers['set-cookie'])) ?? [];
    const shown = await request(changePath, { headers: { cookie } });
    expect(shown.text).toContain('<title>Error: ');
    expect(fieldsOf(shown.text)[1]).toMatchObject({ name: 'email', value: 'ada@' });
    expect(shownEmail(await look())).toBe('ada@example.com');

    const email = `${kind}@example.org`;
    expectSeeOther(await change(email), path);
    expect(shownEmail(await look())).toBe(email);
    expect(await recordsWith(api, email)).toEqual(
      {
        checkout: ['/customer', '/subscription', '/payments'],
        payment: ['/customer', '/payments'],
        setup: ['/customer'],
      }[kind],
    );
  });

  test('can be changed after a declined card, and not after the last one [D-11]', async ({
    api,
  }) => {
    const { path, look, give, change } = await open(api, order);
    await give('payment_token=tok-card_declined-email');
    const email = `later-${kind}@example.org`;
    expectSeeOther(await change(email), path);
    expect(shownEmail(await look())).toBe(email);
    const records = await recordsWith(api, email);
    expect(records).toContain('/customer');
    expect(records.includes('/payments')).toBe(kind !== 'setup');

    const [token] = fieldsOf((await look()).text);
    await give(`payment_token=tok-good-email-${kind}`);
    await postForm(api, `${path}?email`, {
      form_token: token?.value ?? '',
      email: 'too-late@example.org',
    });
    expect(await recordsWith(api, 'too-late@example.org')).toEqual([]);
  });

  test('changes for this order only when the customer has a saved card [D-11]', async ({ api }) => {
    const { customerId } = await saveCard(api);
    const email = `only-${kind}@example.org`;
    const { change } = await open(api, order, { customerId });
    await change(email);
    expect(await recordsWith(api, email)).not.toContain('/customer');
  });

  test('changes for this order only when the customer has paid before [D-11, D-62]', async ({
    api,
  }) => {
    const customerId = await makeCustomer(api);
    const { give } = await open(api, ORDERS['payment']!, { customerId });
    await give(`payment_token=tok-good-before-${kind}`);
    const email = `stranger-${kind}@example.org`;
    const { change, path } = await open(api, order, { customerId });
    expectSeeOther(await change(email), path);
    expect(await recordsWith(api, email)).not.toContain('/customer');
  });
});

test('the checkout of a link shows no e-mail from the record of the customer that the link names [D-11, D-37]', async ({
  api,
}) => {
  const customerId = await makeCustomer(api, 'merchant', ADA);
  const path = await makeLink(api, { customerDetails: {}, customerId });
  const sent = await (await openLink(api, path)).submit();
  const { look, request, path: home } = visit(api, `${api.url}${String(sent.headers['location'])}`);
  for (const page of [await look(), await request(`${home}?email`)]) {
    expect(page.text).toContain('Card number');
    expect(page.text).not.toContain('ada@example.com');
  }
});
