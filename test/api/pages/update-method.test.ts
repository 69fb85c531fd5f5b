import { expect } from 'vitest';
import { updateMethodLink } from '../../../runtime/payer-links.ts';
import { PUBLIC_URL, SESSION_KEY, test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import {
  lastFourOf,
  openUpdatePage,
  updateLinkOf,
} from '../../support/hosted-pages/update-page.ts';
import { linesOf } from '../../support/hosted-pages/page-text.ts';
import {
  alertOf,
  expectSeeOther,
  hasCardForm,
  headingOf,
  refreshOf,
  sessionIn,
  triesOf,
  visit,
} from '../../support/hosted-pages/visits.ts';
import {
  declineNext,
  readSubscription,
  subscriptionIn,
} from '../../support/fixtures/subscriptions.ts';
import { createClock } from '../../support/fixtures/test-clocks.ts';
import type { CreatedSubscription } from '../../support/fixtures/subscriptions.ts';

const DAY = /^\d+ \w+ \d{4}$/;
const DAY_MS = 24 * 3_600_000;
const SIGNER = { publicUrl: PUBLIC_URL, sessionKey: SESSION_KEY };

async function sendCommand(
  api: ApiEnvironment,
  path: string,
  { subscriptionId }: CreatedSubscription,
): Promise<void> {
  const answer = await api.call('POST', path, { body: { subscriptionId } });
  expect(answer.status).toBe(200);
}

test.for(['TRIALING', 'ACTIVE', 'UNPAID'] as const)(
  'a read of a subscription that is %s returns an update link, the same one all day [IF-2.3, D-33]',
  async (status, { api }) => {
    const subscription = await subscriptionIn(api, status);
    // A minute after the next midnight, so that no day ends during the test.
    api.clock.aheadMs = DAY_MS - (Date.now() % DAY_MS) + 60_000;
    const first = await updateLinkOf(api, subscription);
    expect(first).toMatch(
      new RegExp(
        `^${PUBLIC_URL}/update-method/[0-9A-Za-z]{22}\\.[0-9A-Za-z]{22}\\.[0-9a-z]+\\.[\\w-]{22}$`,
      ),
    );
    // A minute before the day ends.
    api.clock.aheadMs += DAY_MS - 120_000;
    expect(await updateLinkOf(api, subscription)).toBe(first);
    api.clock.aheadMs += 120_000;
    expect(await updateLinkOf(api, subscription)).not.toBe(first);
  },
);

test.for(['CREATED', 'PAUSED', 'ENDED'] as const)(
  'a read of a subscription that is %s has no update link [IF-2.3, D-33]',
  async (status, { api }) => {
    const subscription = await subscriptionIn(api, status);
    expect(await readSubscription(api, subscription)).not.toHaveProperty('updatePaymentMethodLink');
  },
);

test('the update page shows the current card and the next payment [D-33]', async ({ api }) => {
  const { look } = await openUpdatePage(api, 'ACTIVE', {
    productPage: { name: 'Tea <b>', description: 'A box' },
    // The first payment is on the day of the test, and the next payment a year later.
    interval: 'YEAR',
  });
  const page = await look();
  expect([page.status, headingOf(page)]).toEqual([200, 'Change your card']);
  expect(page.text).toContain('<p class="soft" dir="auto">Tea &lt;b></p>');
  expect(linesOf(page.text)).toEqual([
    ['Charged today', 'US$0.00'],
    ['Card now', 'Visa ending in 4242'],
    ['Next payment', expect.stringMatching(/^US\$19\.99 on \d+ \w+ \d{4}$/)],
  ]);
  expect(page.text).toContain('<button type="submit">Save card</button>');
  expect(page.text).not.toContain('Cancel and return');
});

test.for(['TRIALING', 'ACTIVE'] as const)(
  'a new card replaces the payment method without a charge while the subscription is %s [D-33]',
  async (status, { api }) => {
    const { subscription, give, comeBack, outcomeAt, lookAtOutcome } = await openUpdatePage(
      api,
      status,
    );
    const page = await give(`payment_token=tok_replaces_${status}_1111`);
    expect([page.status, headingOf(page)]).toEqual([200, 'Your card was replaced']);
    expect(page.text).toContain(
      'Visa ending in 1111 is used from now on. Nothing was charged now.',
    );
    // The result page has no redirect, and no link but those to cancel and to withdraw.
    expect(refreshOf(page)).toBeUndefined();
    expect(page.text).not.toMatch(/<a (?!href="\/m\/mer_)/);
    expect(linesOf(page.text)).toEqual([
      ['Next payment', expect.stringMatching(/^US\$19\.99 on \d+ \w+ \d{4}$/)],
      ['Merchant', 'Acme Ltd'],
      ['Card', 'Visa ending in 1111'],
      ['Date', expect.stringMatching(DAY)],
      ['Reference', subscription.subscriptionId],
    ]);
    expect(await readSubscription(api, subscription)).toMatchObject({ status });
    expect(await lastFourOf(api, subscription)).toBe('1111');

    // The same session takes no second card, but a new link takes another card.
    expectSeeOther(await comeBack('payment_token=tok_second_2222'), outcomeAt);
    expect(await lastFourOf(api, subscription)).toBe('1111');
    expect(headingOf(await lookAtOutcome())).toBe('Your card was replaced');
    const fresh = visit(api, await updateLinkOf(api, subscription));
    expect(hasCardForm(await fresh.look())).toBe(true);
    await fresh.give(`payment_token=tok_third_${status}_3333`);
    expect(await lastFourOf(api, subscription)).toBe('3333');
  },
);

test('the update page says that a new card is charged next while the outcome of a renewal is unknown [D-33, D-30]', async ({
  api,
}) => {
  const { subscription, look, give, lookAtOutcome } = await openUpdatePage(api, 'ACTIVE');
  await declineNext(api, subscription, 'unknown');
  const asked = await look();
  expect(headingOf(asked)).toBe('US$19.99 is due');
  expect(linesOf(asked.text)).toEqual([['Card now', 'Visa ending in 4242']]);
  expect(asked.text).toContain('Save card and pay US$19.99');
  const saved = await give(`payment_token=tok_kept_${subscription.subscriptionId}_1111`);
  expect([headingOf(saved), linesOf(saved.text)[0]]).toEqual([
    'Your card was replaced',
    ['Next payment', expect.stringMatching(/^US\$19\.99 on \d+ \w+ \d{4}$/)],
  ]);
  expect(saved.text).toContain('The payment of US$19.99 that is due is tried with it next.');
  expect(await readSubscription(api, subscription)).toMatchObject({ status: 'ACTIVE' });
  // The next session of the link offers the same for a further card.
  const next = visit(api, PUBLIC_URL + String((await look()).headers['location']));
  expect(headingOf(await next.look())).toBe('US$19.99 is due');
  // After a cancellation for the end of the period nothing is charged.
  const body = { subscriptionId: subscription.subscriptionId, atPeriodEnd: true };
  expect((await api.call('POST', '/subscription/merchant/cancel', { body })).status).toBe(200);
  expect(linesOf((await next.look()).text)[0]).toEqual(['Charged today', 'US$0.00']);
  const receipt = await lookAtOutcome();
  expect(linesOf(receipt.text)[0]).toEqual(['Merchant', 'Acme Ltd']);
  expect(receipt.text).not.toContain('is tried with it next');
});

test.for([
  ['insufficient_funds', '28 February 2027'],
  ['stolen_card', null],
] as const)(
  'the receipt of a new card names the next try, if there is one, after its first charge was declined with %s [D-33, D-30, D-34]',
  async ([code, date], { api }) => {
    const testClockId = await createClock(api, Date.UTC(2027, 0, 31, 12));
    const { subscription, give, lookAtOutcome } = await openUpdatePage(api, 'ACTIVE', {
      testClockId,
    });
    await give(`payment_token=tok_kept_${subscription.subscriptionId}_1111`);
    await declineNext(api, subscription, code);
    expect(await readSubscription(api, subscription)).toMatchObject({ status: 'UNPAID' });
    const receipt = await lookAtOutcome();
    expect([receipt.status, headingOf(receipt)]).toEqual([200, 'Your card was replaced']);
    const next = linesOf(receipt.text).filter(([label]) => label === 'Next payment');
    expect(next).toEqual(date === null ? [] : [['Next payment', `US$19.99 on ${date}`]]);
    expect(receipt.text.includes('is tried with it next')).toBe(date !== null);
  },
);

test('each opening of an update link that replaced a card begins a new session, and each receipt keeps its address and its card [D-33]', async ({
  api,
}) => {
  const first = await openUpdatePage(api, 'ACTIVE');
  const sessions = [first];
  for (const digits of ['1111', '2222', '3333']) {
    await sessions.at(-1)!.give(`payment_token=tok_again_${first.token.slice(0, 8)}_${digits}`);
    expect(await lastFourOf(api, first.subscription)).toBe(digits);
    const opened = await first.look();
    expect(opened.status).toBe(303);
    const next = visit(api, PUBLIC_URL + String(opened.headers['location']));
    expect(next.path).toMatch(/^\/update-method\/[\w.-]+$/);
    expect(sessions.map(({ path }) => path)).not.toContain(next.path);
    expect(hasCardForm(await next.look())).toBe(true);
    sessions.push({ ...first, ...next });
  }
  for (const [index, digits] of ['1111', '2222', '3333'].entries()) {
    const receipt = await sessions[index]!.lookAtOutcome();
    expect(headingOf(receipt)).toBe('Your card was replaced');
    expect(linesOf(receipt.text)).toContainEqual(['Card', `Visa ending in ${digits}`]);
  }
  // A link does not begin anew while its cards were all declined, so its limit of cards holds.
  const last = sessions.at(-1)!;
  await last.give('payment_error=card_declined&payment_error_id=1');
  expectSeeOther(await first.look(), last.path);
  expect(alertOf(await last.look())).toContain('was declined and was not saved');
  // No session outlives the link.
  api.clock.aheadMs += 32 * DAY_MS;
  for (const { look } of sessions) expect((await look()).status).toBe(410);
  api.clock.aheadMs = 0;
});

test('an opened update link says why not after the subscription has ended, and the receipt of its card stays [D-33]', async ({
  api,
}) => {
  const { subscription, give, look, request, lookAtOutcome } = await openUpdatePage(api, 'ACTIVE');
  await give('payment_token=tok_before_the_end_1111');
  await sendCommand(api, '/subscription/merchant/cancel', subscription);
  const page = await request(String((await look()).headers['location']));
  expect([page.status, headingOf(page)]).toEqual([409, 'Your card cannot be changed here']);
  expect(headingOf(await lookAtOutcome())).toBe('Your card was replaced');
});

test('a new card pays the owed cycle while the subscription is UNPAID [D-33, D-30]', async ({
  api,
}) => {
  const { subscription, give, look } = await openUpdatePage(api, 'UNPAID', {
    receiptId: 'r-7',
    description: 'Tea',
  });
  const asked = await look();
  expect(headingOf(asked)).toBe('US$19.99 is due');
  expect(linesOf(asked.text)).toEqual([
    ['Card now', 'Visa ending in 4242'],
    ['Due since', expect.stringMatching(DAY)],
    ['What happened', 'The card was declined'],
    ['Next try', expect.stringMatching(/^\d+ \w+ \d{4} at \d\d:\d\d, with the present card$/)],
  ]);
  expect(asked.text).toContain('<button type="submit">Save card and pay US$19.99</button>');

  const page = await give('payment_token=tok_pays_owed_1111');
  expect(headingOf(page)).toBe('Thank you: your payment was received');
  expect(page.text).toContain(
    'The payment that was due went through. Visa ending in 1111 is used from now on.',
  );
  expect(linesOf(page.text)).toEqual([
    ['Paid', 'US$19.99'],
    ['Product', 'Tea'],
    ['Merchant', 'Acme Ltd'],
    ['Card', 'Visa ending in 1111'],
    ['Date', expect.stringMatching(DAY)],
    ['Reference', 'r-7'],
  ]);
  expect(await readSubscription(api, subscription)).toMatchObject({
    status: 'ACTIVE',
    remainingCycleCount: 10,
  });
});

test.for([
  ['insufficient_funds', 'There was not enough money in the account'],
  ['expired_card', 'The card has expired', 'None with the present card'],
  ['stolen_card', 'The card can no longer be charged', 'None with the present card'],
  ['fraudulent', 'The card can no longer be charged', 'None with the present card'],
  ['incorrect_card_number', 'The card details were not accepted', 'None with the present card'],
  ['issuer_unavailable', 'The payment could not be processed at that time'],
] as const)(
  'the update page says in plain words why a payment is due after %s, until a card is tried there [D-33, D-42]',
  async ([code, reason, nextTry], { api }) => {
    const { give, look } = await openUpdatePage(api, 'UNPAID', {}, code);
    const asked = await look();
    const rows = Object.fromEntries(linesOf(asked.text)) as Record<string, string>;
    expect(rows['What happened']).toBe(reason);
    expect(rows['Next try']).toMatch(nextTry ?? /, with the present card$/);
    expect(asked.text).not.toContain(code);

    // The page gives no reason for a card that was tried here, because a thief could learn from the reason.
    const kept = await give('payment_token=tok_insufficient_funds_tried_1111');
    expect(linesOf(kept.text).map(([label]) => label)).toEqual([
      'Card now',
      'Due since',
      'Next try',
    ]);
  },
);

test('the update page shows the payment when a new card pays the last cycle [D-33]', async ({
  api,
}) => {
  const { subscription, give } = await openUpdatePage(api, 'UNPAID', { cycleCount: 2 });
  const page = await give('payment_token=tok_last_cycle');
  expect(await readSubscription(api, subscription)).toMatchObject({
    status: 'ENDED',
    endReason: 'completed',
  });
  expect(headingOf(page)).toBe('Thank you: your payment was received');
});

test('a new card stays saved when its payment is declined [D-30, D-33]', async ({ api }) => {
  const { subscription, give, look } = await openUpdatePage(api, 'UNPAID');
  const session = sessionIn(await look());
  const kept = await give('payment_token=tok_insufficient_funds_kept_1111');
  expect(kept.status).toBe(200);
  expect(alertOf(kept)).toBe(
    'Your new card was saved, but the payment of US$19.99 was declined. You can use another card.',
  );
  expect(kept.text).not.toContain('insufficient');
  expect(await readSubscription(api, subscription)).toMatchObject({ status: 'UNPAID' });
  expect(await lastFourOf(api, subscription)).toBe('1111');
  expect(linesOf(kept.text)).toContainEqual(['Card now', 'Visa ending in 1111']);

  const paid = await give('payment_token=tok_pays_then_2222');
  expect(headingOf(paid)).toBe('Thank you: your payment was received');
  expect(await lastFourOf(api, subscription)).toBe('2222');
  expect(await triesOf(api, session)).toBe(2);
});

test('the update page shows the payment when a saved card pays at a later retry [D-30, D-33]', async ({
  api,
}) => {
  const { subscription, give, lookAtOutcome } = await openUpdatePage(api, 'UNPAID');
  await give('payment_token=tok_card_declined_at_first_1111');
  api.workflows.faults.card = 'good';
  await api.call('POST', '/subscription/manual-retry', {
    body: { subscriptionId: subscription.subscriptionId },
  });
  api.workflows.faults.card = null;
  expect(await readSubscription(api, subscription)).toMatchObject({ status: 'ACTIVE' });
  expect(headingOf(await lookAtOutcome())).toBe('Thank you: your payment was received');
});

test('the update page shows no payment when an unpause ends UNPAID without one [D-33, D-§4]', async ({
  api,
}) => {
  const { subscription, give, look } = await openUpdatePage(api, 'UNPAID');
  const { subscriptionId } = subscription;
  await give('payment_token=tok_card_declined_then_paused_1111');
  await api.call('POST', '/subscription/merchant/pause', { body: { subscriptionId } });
  const newNextPaymentDate = Date.now() + 30 * 86_400_000;
  await api.call('POST', '/subscription/merchant/unpause', {
    body: { subscriptionId, newNextPaymentDate },
  });
  expect(await readSubscription(api, subscription)).toMatchObject({
    status: 'ACTIVE',
    remainingCycleCount: 11,
  });
  const page = await look();
  expect(headingOf(page)).toBe('Change your card');
  expect(hasCardForm(page)).toBe(true);
});

test('the update page says that a declined card was not saved [D-33]', async ({ api }) => {
  const { subscription, give } = await openUpdatePage(api, 'ACTIVE');
  const notSaved =
    'Your card was declined and was not saved. Nothing was charged. Check the details and try ' +
    'again, or use another card.';
  expect(alertOf(await give('payment_token=tok_stolen_card_1111'))).toBe(notSaved);
  expect(alertOf(await give('payment_error=invalid_cvc&payment_error_id=1'))).toBe(notSaved);
  expect(await lastFourOf(api, subscription)).toBe('4242');

  const unpaid = await openUpdatePage(api, 'UNPAID');
  expect(alertOf(await unpaid.give('payment_token=tok_unsaved_stolen_card'))).toBe(notSaved);
  expect(await lastFourOf(api, unpaid.subscription)).toBe('4242');
});

test.for([
  ['CREATED', 409, 'has not begun yet'],
  ['ENDED', 409, 'has ended'],
] as const)(
  'the update link of a subscription that is %s answers 409 with the reason and takes no card [D-33]',
  async ([status, code, why], { api }) => {
    // A read of a CREATED subscription has no update link, so the test makes one.
    const subscription = await subscriptionIn(api, status === 'CREATED' ? 'CREATED' : 'ACTIVE');
    const url =
      status === 'CREATED'
        ? updateMethodLink(SIGNER, { ...subscription.ref, paymentMethodId: null }, Date.now())
        : await updateLinkOf(api, subscription);
    if (status === 'ENDED') await sendCommand(api, '/subscription/merchant/cancel', subscription);

    const { look, comeBack, outcomeAt } = visit(api, url);
    const page = await look();
    expect([page.status, headingOf(page)]).toEqual([code, 'Your card cannot be changed here']);
    expect(page.text).toContain(why);
    expect(hasCardForm(page)).toBe(false);
    const sent = api.workflows.calls.length;
    expectSeeOther(await comeBack(`payment_token=tok_closed_${status}`), outcomeAt);
    expect(api.workflows.calls).toHaveLength(sent);
  },
);

test.for([
  [{}, 'None while the subscription is paused'],
  [{ resumeAt: Date.UTC(2099, 4, 5) }, 'US$19.99 on 5 May 2099'],
] as const)(
  'a card is changed without a charge while the subscription is PAUSED with %j [D-33, D-§4]',
  async ([pause, next], { api }) => {
    const { subscription, look, give } = await openUpdatePage(api, 'UNPAID', {}, 'stolen_card');
    const { subscriptionId } = subscription;
    const body = { subscriptionId, ...pause };
    expect((await api.call('POST', '/subscription/merchant/pause', { body })).status).toBe(200);
    const page = await look();
    expect([page.status, headingOf(page), alertOf(page)]).toEqual([200, 'Change your card', null]);
    expect(linesOf(page.text)).toEqual([
      ['Charged today', 'US$0.00'],
      ['Card now', 'Visa ending in 4242'],
      ['Next payment', next],
    ]);
    const saved = await give(`payment_token=tok_good_${subscriptionId}_1111`);
    expect(headingOf(saved)).toBe('Your card was replaced');
    expect(saved.text).toContain(
      'Visa ending in 1111 is used from now on. Nothing was charged now.',
    );
    expect(await lastFourOf(api, subscription)).toBe('1111');
    expect(await readSubscription(api, subscription)).toMatchObject({ status: 'PAUSED' });
    const unpause = { subscriptionId, newNextPaymentDate: Date.now() + DAY_MS };
    expect(
      (await api.call('POST', '/subscription/merchant/unpause', { body: unpause })).status,
    ).toBe(200);
    // The card was declined for good. With the old card, the subscription would be UNPAID now.
    expect(await readSubscription(api, subscription)).toMatchObject({ status: 'ACTIVE' });
  },
);

test('an update link is valid for 30 days of real time, then answers 410 and takes no card [D-33]', async ({
  api,
}) => {
  const { subscription, look, comeBack, outcomeAt } = await openUpdatePage(api, 'ACTIVE');
  api.clock.aheadMs += 30 * DAY_MS - 60_000;
  expect((await look()).status).toBe(200);
  // The link expires at the end of a day, plus up to an hour that differs between links.
  api.clock.aheadMs += DAY_MS + 3_600_000 + 60_000;
  const page = await look();
  expect([page.status, headingOf(page)]).toEqual([410, 'This page has expired']);
  expect(page.text).toContain('Ask Acme Ltd for a new link.');
  expectSeeOther(await comeBack('payment_token=tok_expired_link_1111'), outcomeAt);
  api.clock.aheadMs = 0;
  expect(await lastFourOf(api, subscription)).toBe('4242');
});

test('a forged update link answers with a 404 page [D-33]', async ({ api }) => {
  const { token, look } = await openUpdatePage(api, 'ACTIVE');
  const other = await openUpdatePage(api, 'ACTIVE');
  expect((await look()).status).toBe(200);
  const [merchant, subscription, expiry, signature] = token.split('.');
  const [, otherSubscription] = other.token.split('.');
  for (const altered of [
    [merchant, otherSubscription, expiry, signature],
    [api.other.merchantId.slice(4), subscription, expiry, signature],
    [merchant, subscription, `${expiry}0`, signature],
    [
      merchant,
      subscription,
      expiry,
      signature!.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')),
    ],
    [merchant, subscription, expiry, ''],
    ['short'],
  ]) {
    const page = visit(api, `${PUBLIC_URL}/update-method/${altered.join('.')}`);
    const answer = await page.look();
    expect([answer.status, headingOf(answer)]).toEqual([404, 'There is no such page']);
    expect((await page.comeBack('payment_token=tok_altered')).status).toBe(404);
  }
});
