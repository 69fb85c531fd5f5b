import { describe, expect } from 'vitest';
import { untilAvailable } from '../../support/answers.ts';
import { test as apiTest } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { LOCALES } from '../../../domain/locales.ts';
import { fieldsOf, spaced } from '../../support/hosted-pages/page-text.ts';
import {
  expectSeeOther,
  FORM,
  hasCardForm,
  headingOf,
  returnOf,
  sessionIn,
  triesOf,
  visit,
} from '../../support/hosted-pages/visits.ts';
import { intentBody, makeHosted, readIntent } from '../../support/fixtures/payments.ts';
import { createSubscription, readSubscription } from '../../support/fixtures/subscriptions.ts';

const test = apiTest.extend('apiOptions', { scope: 'file' }, { mode: 'live' });

const DAY_MS = 24 * 3_600_000;

let refusals = 0;
/** The query of the return URL for a card that the tokeniser refused, with a new id. */
function refusal(): string {
  refusals += 1;
  return `payment_error=invalid_cvc&payment_error_id=${refusals}`;
}

/** From one IP address, tries `count` cards that are declined, at most five on each payment. */
async function decline(api: ApiEnvironment, address: string, count: number): Promise<void> {
  for (let left = count; left > 0; left -= 5) {
    const { comeBack } = visit(api, (await makeHosted(api)).fwdUrl, address);
    for (let card = 0; card < Math.min(left, 5); card += 1) {
      expect((await comeBack(refusal())).status).toBe(303);
    }
  }
}

/** An address from which 30 cards were declined, and a page that it had paid before. */
const onLocked = test.extend('locked', { scope: 'file' }, async ({ api }) => {
  const address = '203.0.113.1';
  const paid = visit(api, (await makeHosted(api)).fwdUrl, address);
  await paid.give('payment_token=tok_pays_before_the_limit');
  await decline(api, address, 30);
  return { address, paid };
});

describe('a live merchant’s limit of five cards for each checkout session', () => {
  test('locks a checkout after five cards until the checkout expires, and the subscription stays CREATED [D-§4]', async ({
    api,
  }) => {
    const subscription = await createSubscription(api);
    const { give, comeBack, look, path } = visit(api, subscription.fwdUrl);
    for (let card = 1; card <= 4; card += 1) {
      expect(hasCardForm(await give(`payment_token=tok_card_declined_five_${card}`))).toBe(true);
    }
    const locked = await give(refusal());
    expect([locked.status, headingOf(locked)]).toEqual([403, 'This page takes no more cards']);
    expect(locked.text).toContain('Ask Acme Ltd for a new link if you want to try again.');
    expect(locked.text).toContain('status=CREATED">Return to Acme Ltd</a>');

    const sent = api.workflows.calls.length;
    expectSeeOther(await comeBack('payment_token=tok_good_sixth_checkout'), path);
    expect(api.workflows.calls).toHaveLength(sent);
    expect(await readSubscription(api, subscription)).toMatchObject({ status: 'CREATED' });

    api.clock.aheadMs += 24 * 3_600_000 + 1;
    const expired = await look();
    api.clock.aheadMs = 0;
    expect([expired.status, headingOf(expired)]).toEqual([410, 'This page has expired']);
  });

  test('lets the fifth card pay', async ({ api }) => {
    const subscription = await createSubscription(api);
    const { give } = visit(api, subscription.fwdUrl);
    for (let card = 1; card <= 4; card += 1) await give(refusal());
    await give('payment_token=tok_good_fifth_checkout');
    expect(await readSubscription(api, subscription)).toMatchObject({ status: 'ACTIVE' });
  });

  test('lets only five of ten parallel cards be tried', async ({ api }) => {
    const { fwdUrl, xIntentId } = await makeHosted(api);
    const { look, comeBack } = visit(api, fwdUrl);
    const session = sessionIn(await look());
    await Promise.all(
      Array.from({ length: 10 }, (_, card) =>
        untilAvailable(() => comeBack(`payment_token=tok-card_declined-at_once-${card}`)),
      ),
    );
    expect(await triesOf(api, session)).toBe(5);
    const orders = api.orders.calls.filter(({ order }) =>
      JSON.stringify(order).includes(xIntentId),
    );
    expect(orders).toHaveLength(5);
  });

  test('counts a refused card once although its return URL is loaded again, and a new refusal as another card', async ({
    api,
  }) => {
    const { fwdUrl } = await makeHosted(api);
    const { look, give } = visit(api, fwdUrl);
    const session = sessionIn(await look());
    const same = refusal();
    for (let load = 0; load < 6; load += 1) await give(same);
    expect(await triesOf(api, session)).toBe(1);
    await give(refusal());
    expect(await triesOf(api, session)).toBe(2);
    // Refusals without an id count as one card.
    for (let load = 0; load < 6; load += 1) await give('payment_error=invalid_cvc');
    expect(await triesOf(api, session)).toBe(3);
    expect(hasCardForm(await look())).toBe(true);
  });
});

describe('the limit of thirty declined cards an hour from one address at a live merchant', () => {
  onLocked(
    'refuses the next card and every card form to this address only',
    async ({ api, locked: { address, paid } }) => {
      const { fwdUrl, xIntentId } = await makeHosted(api);
      const next = visit(api, fwdUrl, address);
      const refused = await next.comeBack('payment_token=tok_good_from_a_bad_place');
      expect([refused.status, headingOf(refused)]).toEqual([429, 'Too many tries']);
      expect(Number(refused.headers['retry-after'])).toBeGreaterThan(3_500);
      expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(3_600);
      expect(await readIntent(api, xIntentId)).toMatchObject({ status: 'CREATED' });

      const subscription = await createSubscription(api);
      expect((await visit(api, subscription.fwdUrl, address).look()).status).toBe(429);
      expect((await next.look()).status).toBe(429);
      // A paid page is still shown, and the refused token pays from another address.
      expect(headingOf(await paid.look())).toBe('Thank you: your payment was received');
      const elsewhere = visit(api, fwdUrl);
      await elsewhere.give('payment_token=tok_good_from_a_bad_place');
      expect(await readIntent(api, xIntentId)).toMatchObject({ status: 'SUCCESS' });
    },
  );

  onLocked(
    'locks the address at this merchant only [D-§4]',
    async ({ api, locked: { address } }) => {
      expect((await visit(api, (await makeHosted(api)).fwdUrl, address).look()).status).toBe(429);
      const other = visit(api, (await makeHosted(api, 'other')).fwdUrl, address);
      expect(hasCardForm(await other.look())).toBe(true);
      const paid = await other.give('payment_token=tok_pays_at_the_other_merchant');
      expect(headingOf(paid)).toBe('Thank you: your payment was received');
    },
  );

  onLocked(
    'is shown with the time of its end, in the payer’s language',
    async ({ api, locked: { address } }) => {
      const { look } = visit(api, (await makeHosted(api)).fwdUrl, address);
      // The limit ends in 60 minutes. The page names the next full minute. The payment is open for a day.
      api.clock.aheadMs = (Date.UTC(2200, 0, 1, 13, 5, 40) - Date.now()) % DAY_MS;
      const shown: Record<string, string | undefined> = {};
      for (const locale of LOCALES) {
        const page = await look({ headers: { 'accept-language': locale } });
        const [, text = ''] = /<p>(.*?)<\/p>/.exec(page.text) ?? [];
        shown[locale] = spaced(text)
          .replaceAll(/[\u2066-\u2069]/g, '')
          .split(/(?<=[.。]) ?/)
          .at(-1);
      }
      expect(shown).toEqual({
        en: 'You can try again in 60 minutes, at 14:06 (UTC).',
        de: 'Sie können es in 60 Minuten noch einmal versuchen, um 14:06 (UTC).',
        fr: 'Vous pourrez réessayer dans 60 minutes, à 14:06 (UTC).',
        es: 'Podrá intentarlo de nuevo dentro de 60 minutos, a las 14:06 (UTC).',
        pt: 'Será possível tentar novamente em 60 minutos, às 14:06 (UTC).',
        it: 'Potrà riprovare tra 60 minuti, alle 14:06 (UTC).',
        nl: 'U kunt het over 60 minuten opnieuw proberen, om 14:06 (UTC).',
        ja: '60 分後、14:06（UTC）に、もう一度お試しください。',
        ar: 'يمكنك المحاولة مرة أخرى بعد 60 دقيقة، عند الساعة 2:06 م (UTC).',
      });
    },
  );

  test('counts neither reloads of a declined card nor a card that pays', async ({ api }) => {
    const address = '203.0.113.2';
    await decline(api, address, 28);
    const { give, comeBack } = visit(api, (await makeHosted(api)).fwdUrl, address);
    await give('payment_token=tok-card_declined-reloaded');
    for (let load = 0; load < 5; load += 1)
      await comeBack('payment_token=tok-card_declined-reloaded');
    const paid = await give('payment_token=tok_pays_after_reloads');
    expect(headingOf(paid)).toBe('Thank you: your payment was received');
    // The limit has counted 29 cards so far.
    await decline(api, address, 1);
    expect((await visit(api, (await makeHosted(api)).fwdUrl, address).look()).status).toBe(429);
  });

  test('accepts a card whose return was answered 503 before the limit was reached', async ({
    api,
  }) => {
    const address = '203.0.113.3';
    const { fwdUrl, xIntentId } = await makeHosted(api);
    const { comeBack, path } = visit(api, fwdUrl, address);
    api.orders.faults.isDown = true;
    expect((await comeBack('payment_token=tok_handed_on')).status).toBe(503);
    api.orders.faults.isDown = false;
    await decline(api, address, 30);
    expectSeeOther(await comeBack('payment_token=tok_handed_on'), path);
    expect(await readIntent(api, xIntentId)).toMatchObject({ status: 'SUCCESS' });
  });

  test('counts an IPv6 /64 network as one address, and an IPv4-mapped address as IPv4', async ({
    api,
  }) => {
    for (let host = 1; host <= 6; host += 1) await decline(api, `2001:db8:1:2::${host}`, 5);
    const { fwdUrl } = await makeHosted(api);
    expect((await visit(api, fwdUrl, '2001:db8:1:2:ffff::1').look()).status).toBe(429);
    expect((await visit(api, fwdUrl, '2001:db8:1:3::1').look()).status).toBe(200);
    await decline(api, '::ffff:203.0.113.4', 30);
    expect((await visit(api, fwdUrl, '203.0.113.4').look()).status).toBe(429);
  });

  test('ignores the X-Forwarded-For entries before the trusted proxy’s own', async ({ api }) => {
    for (let host = 1; host <= 6; host += 1) await decline(api, `10.0.0.${host}, 203.0.113.5`, 5);
    const { fwdUrl } = await makeHosted(api);
    expect((await visit(api, fwdUrl, '10.9.9.9, 203.0.113.5').look()).status).toBe(429);
    expect((await visit(api, fwdUrl, '10.0.0.1').look()).status).toBe(200);
  });

  test('ignores X-Forwarded-For without a trusted proxy and counts the connecting address', async ({
    createApi,
  }) => {
    const bare = await createApi({ trustedProxies: 0, mode: 'live' });
    for (let host = 1; host <= 6; host += 1) await decline(bare, `198.51.100.${host}`, 5);
    const made = await bare.call('POST', '/payments/create-intent', { body: intentBody() });
    const { fwdUrl } = made.json as { fwdUrl: string };
    expect((await visit(bare, fwdUrl, '192.0.2.77').look()).status).toBe(429);
  });
});

describe('a return from the tokeniser', () => {
  test('has no effect when a page of another site sends the payer’s browser to the return URL [D-§4]', async ({
    api,
  }) => {
    const address = '203.0.113.8';
    const payer = visit(api, (await makeHosted(api)).fwdUrl, address);
    await payer.look();
    for (let page = 1; page <= 3; page += 1) {
      const { fwdUrl, xIntentId } = await makeHosted(api);
      const foreign = visit(api, fwdUrl, address);
      // The attacker knows the page, its form, and the `state` that the attacker’s own browser got.
      const attacker = visit(api, fwdUrl);
      const { state } = returnOf(await attacker.look());
      const session = sessionIn(await attacker.look());
      for (const given of ['', `&state=${state}`]) {
        for (const query of [refusal(), `payment_token=tok-card_declined-foreign-${page}`]) {
          const answer = await foreign.request(`${foreign.path}/return?${query}${given}`);
          expect([answer.status, headingOf(answer)]).toEqual([200, 'One more step']);
        }
      }
      expect(await triesOf(api, session)).toBe(0);
      expect(await readIntent(api, xIntentId)).toMatchObject({ status: 'CREATED' });
      expect(api.orders.calls.some(({ order }) => JSON.stringify(order).includes(xIntentId))).toBe(
        false,
      );
    }
    await payer.give('payment_token=tok_pays_after_foreign_images');
    expect(headingOf(await payer.look())).toBe('Thank you: your payment was received');
  });

  test('pays when the state of the form and the cookie show that this browser got the form [D-§4]', async ({
    api,
  }) => {
    const { fwdUrl, xIntentId } = await makeHosted(api);
    const { look, request, path } = visit(api, fwdUrl);
    const page = await look();
    const { state, cookie, attributes } = returnOf(page);
    expect(attributes).toEqual([`Path=${path}`, 'HttpOnly', 'SameSite=Lax', 'Secure']);
    const again = await look({ headers: { cookie } });
    expect(again.headers['set-cookie']).toBeUndefined();
    expect(fieldsOf(again.text)).toEqual(fieldsOf(page.text));
    const url = `${path}/return?state=${state}&payment_token=tok_pays_by_state`;
    expectSeeOther(await request(url, { headers: { cookie } }), path);
    expect(await readIntent(api, xIntentId)).toMatchObject({ status: 'SUCCESS' });
  });

  test('pays without a cookie only when the payer confirms on our page [D-§4]', async ({ api }) => {
    const { fwdUrl, xIntentId } = await makeHosted(api);
    const { request, path } = visit(api, fwdUrl, '203.0.113.9');
    const url = `${path}/return?state=x&payment_token=tok_pays_confirmed`;
    const page = await request(url);
    const form = fieldsOf(page.text).map(({ name, value }) => [name, value ?? '']);
    expect(form.map(([name]) => name)).toEqual(['form_token']);
    expect(page.text).toContain(`action="${url.replace('&', '&amp;')}"`);
    const raw = new URLSearchParams(form).toString();
    for (const [sent, headers] of [
      [raw, { 'sec-fetch-site': 'cross-site' }],
      [raw, { origin: 'https://foreign.example' }],
      ['form_token=guessed', {}],
    ] as const) {
      const refused = await request(url, { raw: sent, headers: { ...FORM, ...headers } }, 'POST');
      expect(refused.status).toBe(403);
    }
    expect(await readIntent(api, xIntentId)).toMatchObject({ status: 'CREATED' });
    expectSeeOther(await request(url, { raw, headers: FORM }, 'POST'), path);
    expectSeeOther(await request(url, { raw, headers: FORM }, 'POST'), path);
    expect(await readIntent(api, xIntentId)).toMatchObject({ status: 'SUCCESS' });
  });

  test('counts a declined card for the payer’s address when the payer confirms on our page [D-§4]', async ({
    api,
  }) => {
    const address = '203.0.113.10';
    await decline(api, address, 29);
    const { fwdUrl } = await makeHosted(api);
    const { request, look, path } = visit(api, fwdUrl, address);
    const url = `${path}/return?payment_token=tok-card_declined-confirmed`;
    const token = fieldsOf((await request(url)).text).find(({ name }) => name === 'form_token');
    const raw = new URLSearchParams({ form_token: token?.value ?? '' }).toString();
    expectSeeOther(await request(url, { raw, headers: FORM }, 'POST'), path);
    expect((await look()).status).toBe(429);
  });
});
