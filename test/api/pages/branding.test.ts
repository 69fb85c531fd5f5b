import { expect } from 'vitest';
import { changeSettings } from '../../../db/repositories/merchants/settings.ts';
import type { Branding } from '../../../domain/branding.ts';
import { test } from '../../support/api-environment.ts';
import type { Answer, ApiEnvironment } from '../../support/api-environment.ts';
import { intentBody, setupBody } from '../../support/fixtures/payments.ts';
import { createSubscription, subscriptionIn } from '../../support/fixtures/subscriptions.ts';
import { readSubscription } from '../../support/fixtures/subscriptions.ts';
import { makeLink, openLink } from '../../support/hosted-pages/links.ts';
import { browse, headingOf, visit } from '../../support/hosted-pages/visits.ts';

const BRANDING: Branding = {
  logoUrl: 'https://cdn.shop.example/logo.svg?v=2',
  colour: '#ffcc00',
  termsUrl: 'https://shop.example/terms',
  supportUrl: 'https://shop.example/help?from=checkout',
};

const brand = (api: ApiEnvironment, branding: Branding) =>
  changeSettings(api.db, api.merchant.merchantId, { branding });

/** The parts of a page that come from the merchant's settings. */
const brandOf = ({ text, headers }: Answer) => ({
  logo: /<main><img class="logo" src="([^"]*)" alt\/>/.exec(text)?.[1],
  icon: /<link rel="icon" href="([^"]*)"\/>/.exec(text)?.[1],
  images: /img-src ([^;]*);/.exec(String(headers['content-security-policy']))?.[1],
  colours: /--brand: ([^;]*); --brand-ink: ([^;]*);/.exec(text)?.slice(1),
  links: [
    ...(/<footer>(.*?)<\/footer>/.exec(text)?.[1] ?? '').matchAll(
      /<a href="(https:[^"]*)" target="_blank" rel="noopener noreferrer">([^<]*)<\/a>/g,
    ),
  ].map(([, ...link]) => link),
});

const SHOWN = {
  logo: 'https://cdn.shop.example/logo.svg?v=2',
  icon: 'https://cdn.shop.example/logo.svg?v=2',
  images: 'https://cdn.shop.example',
  colours: ['#ffcc00', '#0d1526'],
  links: [
    ['https://shop.example/terms', 'Terms and conditions'],
    ['https://shop.example/help?from=checkout', 'Help and contact'],
  ],
};

const PLAIN = {
  logo: undefined,
  icon: undefined,
  images: undefined,
  colours: undefined,
  links: [],
};

test('every page of a merchant shows the logo, the colour and the links of the merchant’s settings [D-§7]', async ({
  api,
}) => {
  await brand(api, BRANDING);
  const subscription = await createSubscription(api);
  const checkout = visit(api, subscription.fwdUrl);
  const { json: intent } = await api.call('POST', '/payments/create-intent', {
    body: intentBody(),
  });
  const { json: setup } = await api.call('POST', '/setup-method/create', { body: setupBody() });
  const active = await readSubscription(api, await subscriptionIn(api, 'ACTIVE'));
  const linkPath = await makeLink(api, { customerDetails: {} });
  const link = await openLink(api, linkPath);

  const pages: [string, Answer][] = [
    ['Subscription', await checkout.look()],
    ['This form is not valid any more', await checkout.post({ form_token: 'x' })],
    ['Thank you: your payment was received', await checkout.give('payment_token=tok_good_brand')],
    ['Payment to Acme Ltd', await visit(api, (intent as { fwdUrl: string }).fwdUrl).look()],
    ['Save a card with Acme Ltd', await visit(api, (setup as { fwdUrl: string }).fwdUrl).look()],
    ['Change your card', await visit(api, String(active['updatePaymentMethodLink'])).look()],
    ['Subscription', link.page],
  ];
  for (const [heading, page] of pages) {
    expect(headingOf(page)).toBe(heading);
    expect(brandOf(page), heading).toEqual(SHOWN);
  }
  expect(pages[0]![1].headers['referrer-policy']).toBe('no-referrer');

  await brand(api, { supportUrl: 'https://shop.example/help' });
  expect(brandOf(await checkout.look())).toEqual({
    ...PLAIN,
    links: [['https://shop.example/help', 'Help and contact']],
  });
  await brand(api, {});
  expect(brandOf(await checkout.look())).toEqual(PLAIN);
});

test('a page without a merchant, and a page of a merchant without branding, show no branding [D-§7, D-21]', async ({
  api,
}) => {
  await brand(api, BRANDING);
  for (const path of ['/checkout/unknown', '/l/unknown', '/update-method/unknown']) {
    expect(brandOf(await browse(api, path))).toEqual(PLAIN);
  }
  const made = await api.call('POST', '/payments/create-intent', {
    body: intentBody(),
    as: api.other,
  });
  expect(made.status).toBe(200);
  const other = await visit(api, (made.json as { fwdUrl: string }).fwdUrl).look();
  expect(brandOf(other)).toEqual(PLAIN);
  await brand(api, {});
});

test('branding that was stored without a check is left out of the page and its content policy, or is escaped [D-§7]', async ({
  api,
}) => {
  await brand(api, {
    logoUrl: 'javascript:alert(1)',
    colour: 'red} body { display: none',
    termsUrl: 'http://shop.example/terms',
    supportUrl: 'https://shop.example/"><script>',
  });
  const page = await visit(api, (await createSubscription(api)).fwdUrl).look();
  expect(page.status).toBe(200);
  expect(brandOf(page)).toEqual({
    ...PLAIN,
    links: [['https://shop.example/&quot;>&lt;script>', 'Help and contact']],
  });
  expect(page.text).not.toContain('display: none');
  await brand(api, {});
});

test('a stored logo whose host could extend the Content-Security-Policy is not shown [D-§7]', async ({
  api,
}) => {
  await brand(api, { logoUrl: 'https://a;script-src/x.png' });
  const link = await openLink(api, await makeLink(api, { customerDetails: {} }));
  expect(brandOf(link.page)).toEqual(PLAIN);
  expect(link.page.headers['content-security-policy']).not.toContain(';script-src');
});
