import { describe, expect } from 'vitest';
import { test } from '../../support/api-environment.ts';
import type { Answer } from '../../support/api-environment.ts';
import { intentBody, setupBody } from '../../support/fixtures/payments.ts';
import { createSubscription, readSubscription } from '../../support/fixtures/subscriptions.ts';
import { openCheckout } from '../../support/hosted-pages/checkouts.ts';
import { makeLink, makePaymentLink, openLink, rowOf } from '../../support/hosted-pages/links.ts';
import { fieldsOf } from '../../support/hosted-pages/page-text.ts';
import { browse, headingOf, postForm, visit } from '../../support/hosted-pages/visits.ts';

/** The `lang` and `dir` of a page. */
const languageOf = ({ text }: Answer) =>
  /<html lang="([^"]*)" dir="([^"]*)">/.exec(text)?.slice(1).join(' ');

const buttonOf = ({ text }: Answer) => /<button type="submit">([^<]*)<\/button>/.exec(text)?.[1];

const titleOf = ({ text }: Answer) => /<title>([^<]*)<\/title>/.exec(text)?.[1];

const accepting = (languages: string) => ({ headers: { 'accept-language': languages } });

/** The lines of the price list as they are in the HTML. */
const listOf = ({ text }: Answer) =>
  [...text.matchAll(/<dt>([^<]*)<\/dt><dd>([^<]*)<\/dd>/g)].map(([, ...line]) => line.join(': '));

describe('the checkout page of 1,234.50 USD a month', () => {
  test.for([
    [
      'en',
      'en ltr',
      'Pay US$1,234.50',
      [
        'Today: US$1,234.50',
        'Then: US$1,234.50 every month, from 28\u00a0February\u00a02026',
        'In all: US$3,703.50 in 3 payments, the last on 31\u00a0March\u00a02026',
      ],
    ],
    [
      'de',
      'de ltr',
      '1.234,50\u00a0$ zahlen',
      [
        'Heute: 1.234,50\u00a0$',
        'Danach: 1.234,50\u00a0$ jeden Monat, ab dem 28.\u00a0Februar\u00a02026',
        'Insgesamt: 3.703,50\u00a0$ in 3 Zahlungen, die letzte am 31.\u00a0März\u00a02026',
      ],
    ],
    [
      'ja',
      'ja ltr',
      '$1,234.50を支払う',
      [
        '本日: $1,234.50',
        'その後: 2026\u2060年\u20602\u2060月\u206028\u2060日から1か月ごとに$1,234.50',
        '合計: 3回のお支払いで$3,703.50、最終回は2026\u2060年\u20603\u2060月\u206031\u2060日',
      ],
    ],
    [
      'ar',
      'ar rtl',
      'دفع \u2067\u20661,234.50\u00a0US$\u2069\u2069',
      [
        'اليوم: \u20661,234.50\u00a0US$\u2069',
        'ثم: \u2067\u2067\u20661,234.50\u00a0US$\u2069\u2069 كل شهر\u2069، ابتداءً من \u206828\u00a0فبراير\u00a02026\u2069',
        'الإجمالي: \u2067\u2067\u20663,703.50\u00a0US$\u2069\u2069، \u20683 دفعات\u2069\u2069، آخرها في \u206831\u00a0مارس\u00a02026\u2069',
      ],
    ],
  ] as const)(
    'shows amounts, dates and texts in the locale %s [IF-2.3, D-§7]',
    async ([locale, language, button, lines], { api }) => {
      const { path } = await openCheckout(api, {
        locale,
        amount: 123_450,
        cycleCount: 3,
        productPage: { name: 'رسائل Garden', description: 'One letter a month.' },
      });
      // The merchant's choice takes precedence over the browser's.
      const page = await browse(api, path, accepting('fr'));
      expect(languageOf(page)).toBe(language);
      expect(buttonOf(page)).toBe(button);
      expect(listOf(page)).toEqual(lines);
      expect(page.text).toContain('<p class="from" dir="auto">Acme Ltd</p>');
      expect(page.text).toContain('<h1 dir="auto">رسائل Garden</h1>');
      expect(page.text).toContain('<p class="soft" dir="auto">One letter a month.</p>');
      expect(page.text).toContain('<input id="number" name="number" dir="ltr"');
    },
  );
});

describe('without a locale, the language of a page', () => {
  test.for([
    [undefined, 'en'],
    ['', 'en'],
    ['de', 'de'],
    ['de-AT,de;q=0.9,en;q=0.8', 'de'],
    ['pt-PT', 'pt'],
    ['zh-CN, zh;q=0.9, ja;q=0.5', 'ja'],
    ['en;q=0.3, nl;q=0.7', 'nl'],
    ['IT', 'it'],
    ['sv, fi', 'en'],
    ['*', 'en'],
    ['de;q=0, es;q=0.1', 'es'],
    ['de;q=0', 'en'],
    ['de;q=abc, fr', 'fr'],
    [',,;;q=,-,de--x;;', 'de'],
    ['../../etc/passwd', 'en'],
    ['<script>, __proto__, constructor', 'en'],
    [`${'x-y,'.repeat(1_500)}ar`, 'ar'],
  ] as const)('follows Accept-Language %s: %s [D-§7]', async ([languages, locale], { api }) => {
    const headers = languages === undefined ? {} : accepting(languages);
    const page = await browse(api, '/checkout/unknown', headers);
    expect([page.status, languageOf(page)?.split(' ')[0]]).toEqual([404, locale]);
  });

  test('is the language of the browser on every page of a link', async ({ api }) => {
    const path = await makeLink(api, { customerDetails: {} });
    const page = await browse(api, path, accepting('nl'));
    expect([languageOf(page), buttonOf(page)]).toEqual(['nl ltr', 'Doorgaan']);
    const fields = Object.fromEntries(
      fieldsOf(page.text).map(({ name, value = '' }) => [name, value]),
    );
    const typed = { ...fields, name: 'Ada', email: 'ada' };
    const wrong = await postForm(api, path, typed, { 'accept-language': 'nl' });
    expect([wrong.status, titleOf(wrong)]).toEqual([400, 'Fout: Abonnement · Acme Ltd']);
    expect(wrong.text).toContain('Vul een e-mailadres in, bijvoorbeeld anna@example.com.');
    expect(wrong.text).toMatch(/<input id="email"[^>]* value="ada" required autofocus /);
    expect(wrong.text.match(/autofocus/g)).toHaveLength(1);
    const gone = await browse(api, '/l/unknown', accepting('es'));
    expect([languageOf(gone), headingOf(gone)]).toEqual([
      'es ltr',
      'Este enlace no se puede utilizar',
    ]);
  });
});

describe('the locale of a request', () => {
  test('is the language of the payment page and of the setup page', async ({ api }) => {
    const intent = intentBody({ locale: 'it', description: undefined });
    const payment = await api.call('POST', '/payments/create-intent', { body: intent });
    const page = await visit(api, (payment.json as { fwdUrl: string }).fwdUrl).look();
    expect([languageOf(page), headingOf(page)]).toEqual(['it ltr', 'Pagamento a Acme Ltd']);

    const body = setupBody({ locale: 'pt' });
    const made = await api.call('POST', '/setup-method/create', { body });
    const setup = await visit(api, (made.json as { fwdUrl: string }).fwdUrl).look();
    expect([languageOf(setup), headingOf(setup)]).toEqual([
      'pt ltr',
      'Salvar um cartão com Acme Ltd',
    ]);
  });

  test('is the language of the subscription’s result page and update page', async ({ api }) => {
    const subscription = await createSubscription(api, { locale: 'fr' });
    const { give } = visit(api, subscription.fwdUrl);
    const paid = await give('payment_token=tok_good_french_1111');
    expect([languageOf(paid), headingOf(paid)]).toEqual([
      'fr ltr',
      'Merci\u00a0: votre paiement a bien été reçu',
    ]);
    const { updatePaymentMethodLink } = await readSubscription(api, subscription);
    const update = await visit(api, String(updatePaymentMethodLink)).look();
    expect([languageOf(update), headingOf(update)]).toEqual(['fr ltr', 'Changer de carte']);
  });

  test('is the language of a created link’s page and of the checkouts that the link begins [D-37]', async ({
    api,
  }) => {
    for (const path of [
      await makeLink(api, { locale: 'ja' }),
      await makePaymentLink(api, { locale: 'ja' }),
    ]) {
      expect(await rowOf(api, path)).toMatchObject({ locale: 'ja' });
      const { page, submit } = await openLink(api, path);
      expect(languageOf(page)).toBe('ja ltr');
      const next = await browse(api, String((await submit()).headers['location']));
      expect(languageOf(next)).toBe('ja ltr');
    }
  });

  test('is the language of the error page when the checkout page refuses a form', async ({
    api,
  }) => {
    const { path } = await openCheckout(api, { locale: 'de' });
    const page = await postForm(api, path, { form_token: 'foreign' });
    expect([page.status, languageOf(page), titleOf(page)]).toEqual([
      403,
      'de ltr',
      'Dieses Formular ist nicht mehr gültig · Acme Ltd',
    ]);
  });
});
