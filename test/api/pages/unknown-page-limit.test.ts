import { randomBytes } from 'node:crypto';
import { describe, expect } from 'vitest';
import { randomToken } from '../../../domain/ids.ts';
import { PUBLIC_URL, test as apiTest } from '../../support/api-environment.ts';
import { makeHosted } from '../../support/fixtures/payments.ts';
import { createSubscription } from '../../support/fixtures/subscriptions.ts';
import { hasCardForm, headingOf, visit } from '../../support/hosted-pages/visits.ts';

const test = apiTest.extend('apiOptions', { scope: 'file' }, { mode: 'live' });

const KINDS = ['checkout', 'payment', 'setup', 'update-method', 'l'];

/** The URL of a page that does not exist. */
function unknownUrl(guess: number): string {
  return `${PUBLIC_URL}/${KINDS[guess % KINDS.length]}/${randomToken(randomBytes)}`;
}

/** Headers of a navigation that a page of another site starts. */
const FOREIGN_NAVIGATION = {
  'sec-fetch-site': 'cross-site',
  'sec-fetch-dest': 'document',
  'sec-fetch-mode': 'navigate',
};

describe('the limit of twenty unknown pages a minute from one address', () => {
  test('refuses further unknown pages to this address only, and no page that exists [D-§4]', async ({
    api,
  }) => {
    const address = '203.0.113.6';
    const subscription = await createSubscription(api);
    const { fwdUrl } = await makeHosted(api);
    for (let guess = 0; guess < 20; guess += 1) {
      const unknown = visit(api, unknownUrl(guess), address);
      const answer = await unknown.look({ headers: FOREIGN_NAVIGATION });
      expect(answer.status).toBe(guess % KINDS.length === 4 ? 410 : 404);
    }
    for (let guess = 0; guess < KINDS.length; guess += 1) {
      const refused = await visit(api, unknownUrl(guess), address).look();
      expect([refused.status, headingOf(refused)]).toEqual([429, 'Too many tries']);
      expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(60);
    }
    const checkout = await visit(api, subscription.fwdUrl, address).look();
    expect([checkout.status, hasCardForm(checkout)]).toEqual([200, true]);
    const paid = await visit(api, fwdUrl, address).give('payment_token=tok_pays_at_the_limit');
    expect(headingOf(paid)).toBe('Thank you: your payment was received');
    expect((await visit(api, unknownUrl(0), '203.0.113.7').look()).status).toBe(404);
  });

  test('does not count a prefetch [D-§4]', async ({ api }) => {
    const address = '203.0.113.16';
    for (const purpose of ['prefetch', 'prefetch;prerender']) {
      const headers = { ...FOREIGN_NAVIGATION, 'sec-purpose': purpose };
      for (let guess = 0; guess < 24; guess += 1) {
        const url = `${PUBLIC_URL}/l/${randomToken(randomBytes)}`;
        expect((await visit(api, url, address).look({ headers })).status).toBe(410);
      }
    }
    expect((await visit(api, unknownUrl(0), address).look()).status).toBe(404);
  });

  test('answers 403 to a request that a page of another site embeds, without counting the request [D-§4]', async ({
    api,
  }) => {
    const address = '203.0.113.11';
    const { fwdUrl } = await makeHosted(api);
    for (const [dest, mode] of [
      ['image', 'no-cors'],
      ['iframe', 'navigate'],
      ['empty', 'no-cors'],
    ] as const) {
      const headers = {
        'sec-fetch-site': 'cross-site',
        'sec-fetch-dest': dest,
        'sec-fetch-mode': mode,
      };
      for (let image = 0; image < 10; image += 1) {
        const url = `${PUBLIC_URL}/payment/${randomToken(randomBytes)}`;
        expect((await visit(api, url, address).look({ headers })).status).toBe(403);
      }
      const known = await visit(api, fwdUrl, address).look({ headers });
      expect([known.status, hasCardForm(known)]).toEqual([403, false]);
      expect(known.headers['set-cookie']).toBeUndefined();
    }
    const payer = await visit(api, fwdUrl, address).look({ headers: FOREIGN_NAVIGATION });
    expect([payer.status, hasCardForm(payer)]).toEqual([200, true]);
    expect((await visit(api, unknownUrl(0), address).look()).status).toBe(404);
  });
});
