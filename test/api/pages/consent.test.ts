import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { createSubscription } from '../../support/fixtures/subscriptions.ts';
import { createClock } from '../../support/fixtures/test-clocks.ts';
import { spaced } from '../../support/hosted-pages/page-text.ts';
import { visit } from '../../support/hosted-pages/visits.ts';

const list = async (api: ApiEnvironment, query = '') =>
  (await api.call('GET', `/consents${query}`)).json as { data: Record<string, unknown>[] };

test('what a payer agreed to is stored once in the words of the page, before the card is charged [D-64]', async ({
  api,
}) => {
  const testClockId = await createClock(api, Date.UTC(2027, 0, 31, 12));
  const productPage = { name: 'Garden Letters' };
  const { subscriptionId, fwdUrl } = await createSubscription(api, { testClockId, productPage });
  const { look, give } = visit(api, fwdUrl);
  await look();
  expect(await list(api)).toEqual({ data: [], metadata: {} });
  await give('payment_token=tok_declined_0002');
  await give('payment_token=tok_pays_4242');
  const { data } = await list(api, `?subscriptionId=${subscriptionId}`);
  const text = String(data[0]?.['text']);
  expect(spaced(text)).toBe(
    'Acme Ltd · Garden Letters · Today: US$19.99 · Then: US$19.99 every month, from 28 February 2027 · ' +
      'In all: US$239.88 in 12 payments, the last on 31 December 2027 · Dates are in UTC. As soon as you have ' +
      'entered it, US$19.99 is charged. By continuing, you allow Acme Ltd to charge this card for each payment ' +
      'of this subscription, until it ends or is cancelled.',
  );
  expect(data).toEqual([
    {
      consentId: expect.stringMatching(/^cns_/) as string,
      customerId: expect.stringMatching(/^cus_/) as string,
      subscriptionId,
      intentId: null,
      setupMethodId: null,
      agreedAt: expect.any(Number) as number,
      language: 'en',
      textVersion: '1',
      text,
      digest: createHash('sha256').update(text).digest('hex'),
      amount: 1_999,
      currency: 'USD',
    },
  ]);
});
