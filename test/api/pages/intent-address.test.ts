import { expect } from 'vitest';
import { PUBLIC_URL, test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import {
  browse,
  expectSeeOther,
  hasCardForm,
  headingOf,
  visit,
} from '../../support/hosted-pages/visits.ts';
import { eventTypes } from '../../support/fixtures/events.ts';
import { makeHosted, makePaid, readIntent, UNKNOWN_IDS } from '../../support/fixtures/payments.ts';

/** Tests the URL `/?xpay_intent_id=…`, which redirects to the page of the hosted payment with this id. */

const byId = (api: ApiEnvironment, id: string) => browse(api, `/?xpay_intent_id=${id}`);

test('/?xpay_intent_id= with the id of a hosted payment redirects to a page that takes the payment [D-§7]', async ({
  api,
}) => {
  const { xIntentId, fwdUrl } = await makeHosted(api);
  const rows = await api.countRows();
  const path = `/payment/${xIntentId}`;
  expectSeeOther(await byId(api, xIntentId), path);
  expect(await api.countRows()).toEqual(rows);

  const { look, give } = visit(api, `${PUBLIC_URL}${path}`);
  expect(hasCardForm(await look())).toBe(true);
  expect(headingOf(await give('payment_token=tok_by_id'))).toBe(
    'Thank you: your payment was received',
  );
  expect(headingOf(await browse(api, new URL(fwdUrl).pathname))).toBe(
    'Thank you: your payment was received',
  );
  expect(await readIntent(api, xIntentId)).toMatchObject({
    status: 'SUCCESS',
    chargeAttempts: [{ attempt: 1, status: 'SUCCESS' }],
  });
  expectSeeOther(await byId(api, xIntentId), path);
  expect(await eventTypes(api, xIntentId)).toEqual([
    'intent.created',
    'intent.checkout_opened',
    'intent.success',
  ]);
});

test('/?xpay_intent_id= with an empty id, an unknown id or the id of a payment without a page answers 404 [D-§7]', async ({
  api,
}) => {
  const unknown = await browse(api, '/payment/0000000000000000000000');
  expect([unknown.status, headingOf(unknown)]).toEqual([404, 'There is no such page']);
  const withoutNonce = (text: string) => text.replaceAll(/nonce="[^"]+"/g, '');
  for (const id of ['', 'x', '%2F%2Fevil.example', UNKNOWN_IDS.intent, await makePaid(api)]) {
    const answer = await byId(api, id);
    expect([id, answer.status]).toEqual([id, 404]);
    expect(withoutNonce(answer.text)).toBe(withoutNonce(unknown.text));
  }
});

test('/ shows no intent without xpay_intent_id, and takes no POST [D-§7, D-21]', async ({
  api,
}) => {
  const answer = await api.call('GET', '/?status=SUCCESS', { as: null });
  expect([answer.status, answer.json]).toEqual([
    200,
    { service: 'Perennial', openapi: '/openapi.json', documentation: '/docs' },
  ]);
  const posted = await api.call('POST', '/?xpay_intent_id=x', { as: null });
  expect([posted.status, posted.headers['allow']]).toEqual([405, 'HEAD, GET']);
});

test('an IP address is refused with 429 after twenty unknown intent ids in a minute [D-§7]', async ({
  createApi,
}) => {
  const fresh = await createApi();
  for (let at = 0; at < 20; at += 1) expect((await byId(fresh, String(at))).status).toBe(404);
  expect((await byId(fresh, 'x')).status).toBe(429);
});
