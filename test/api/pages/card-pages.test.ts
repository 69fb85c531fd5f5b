import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { paymentAttempts } from '../../../db/schema/payments.ts';
import { untilAvailable } from '../../support/answers.ts';
import { PUBLIC_URL, TOKENISER_URL, test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { eventTypes } from '../../support/fixtures/events.ts';
import { makeHosted, setupBody } from '../../support/fixtures/payments.ts';
import { createSubscription, subscriptionIn } from '../../support/fixtures/subscriptions.ts';
import { fieldsOf } from '../../support/hosted-pages/page-text.ts';
import { updateLinkOf } from '../../support/hosted-pages/update-page.ts';
import {
  alertOf,
  expectSeeOther,
  hasCardForm,
  headingOf,
  ownReturn,
  ownReturnUrl,
  refreshOf,
  sessionIn,
  triesOf,
  visit,
} from '../../support/hosted-pages/visits.ts';

/** The behaviour that the pages with a card form have in common. */

interface Kind {
  /** The first segment of the page's path. */
  kind: string;
  button: string;
  /** Returns the URL of a new page, and the stream of its events. */
  make: (api: ApiEnvironment) => Promise<{ url: string; stream: string }>;
  /** The tokens of cards that are declined, without the id that makes them unique; `unsaved` cards are not saved. */
  declined: string[];
  alert: string;
  done: string;
  /** The states of the attempts, and the events, after these cards and a card that is accepted. */
  attempts: string[];
  events: string[];
}

const NOT_PAID =
  'Your payment was declined and nothing was charged. Check the details and try again, or use ' +
  'another card.';
const NOT_SAVED =
  'Your card was declined and was not saved. Nothing was charged. Check the details and try ' +
  'again, or use another card.';
const PAID = 'Thank you: your payment was received';

const CHARGING: Kind[] = [
  {
    kind: 'checkout',
    button: 'Pay US$19.99',
    make: async (api) => {
      const { fwdUrl, subscriptionId } = await createSubscription(api);
      return { url: fwdUrl, stream: subscriptionId };
    },
    declined: ['tok-card_declined'],
    alert: NOT_PAID,
    done: PAID,
    attempts: ['DECLINED', 'SUCCEEDED'],
    events: [
      'intent.failed',
      'intent.success',
      'subscription.cycle_charged',
      'subscription.active',
    ],
  },
  {
    kind: 'payment',
    button: 'Pay US$25.00',
    make: async (api) => {
      const { fwdUrl, xIntentId } = await makeHosted(api);
      return { url: fwdUrl, stream: xIntentId };
    },
    declined: ['tok-card_declined'],
    alert: NOT_PAID,
    done: PAID,
    attempts: ['DECLINED', 'SUCCEEDED'],
    events: ['intent.failed', 'intent.success'],
  },
  {
    kind: 'update-method',
    button: 'Save card and pay US$19.99',
    make: async (api) => {
      const subscription = await subscriptionIn(api, 'UNPAID');
      const url = await updateLinkOf(api, subscription);
      return { url, stream: subscription.subscriptionId };
    },
    declined: ['tok-unsaved-card_declined', 'tok-card_declined'],
    alert: NOT_SAVED,
    done: PAID,
    attempts: ['DECLINED', 'SUCCEEDED'],
    events: [
      'intent.failed',
      'intent.success',
      'subscription.cycle_charged',
      'subscription.active',
    ],
  },
];

const KINDS: Kind[] = [
  ...CHARGING,
  {
    kind: 'setup',
    button: 'Save card',
    make: async (api) => {
      const made = await api.call('POST', '/setup-method/create', { body: setupBody() });
      const { setupMethodId, fwdUrl } = made.json as { setupMethodId: string; fwdUrl: string };
      return { url: fwdUrl, stream: setupMethodId };
    },
    declined: ['tok-card_declined'],
    alert: NOT_SAVED,
    done: 'Your card was saved',
    attempts: [],
    events: ['setup_method.success'],
  },
];

/** Makes a page and opens it. */
async function open(api: ApiEnvironment, { make }: Kind) {
  const { url, stream } = await make(api);
  const page = visit(api, url);
  const session = sessionIn(await page.look());
  const known = (await eventTypes(api, stream)).length;
  return {
    ...page,
    session,
    /** The states of the attempts that the page's cards caused. */
    attempts: async () => {
      const rows = await api.db
        .select({ state: paymentAttempts.state })
        .from(paymentAttempts)
        .where(eq(paymentAttempts.sessionId, session))
        .orderBy(paymentAttempts.attemptNumber);
      return rows.map(({ state }) => state);
    },
    newEvents: async () => (await eventTypes(api, stream)).slice(known),
  };
}

describe.each(KINDS)('the $kind page', (kind) => {
  test('has one script and a card form that posts to the tokeniser only [D-§7]', async ({
    api,
  }) => {
    const { look, path } = await open(api, kind);
    const page = await look();
    const [, cardForm = ''] = page.text.split(
      `<form method="post" action="${TOKENISER_URL}" data-texts=`,
    );
    expect(fieldsOf(cardForm)).toEqual([
      { name: 'session', value: expect.stringMatching(/^cs_[0-9A-Za-z]{22}$/) as string },
      { name: 'return_url', value: ownReturnUrl(path) },
      { name: 'name', label: 'Name on card', autocomplete: 'cc-name', value: 'Ada Example' },
      { name: 'number', label: 'Card number', autocomplete: 'cc-number' },
      { name: 'expiry', label: 'Expiry', autocomplete: 'cc-exp' },
      { name: 'cvc', label: 'CVC', autocomplete: 'cc-csc' },
    ]);
    expect(page.text).toContain(`<button type="submit">${kind.button}</button>`);
    expect(page.text.match(/<script/g)).toHaveLength(1);
    expect(page.headers['content-security-policy']).toMatch(
      /^default-src 'none'; style-src 'nonce-[^']+'; script-src 'sha256-[^']+'; form-action 'self' https:\/\/cards\.example; base-uri 'none'; frame-ancestors 'none'$/,
    );
  });

  test('changes nothing on a HEAD or prefetch request, also to its return URL [D-33, D-44]', async ({
    api,
  }) => {
    const { look, comeBack, request, path, outcomeAt, session } = await open(api, kind);
    const before = await api.countRows();
    const prefetch = { headers: { 'sec-purpose': 'prefetch;prerender' } };
    await look({}, 'HEAD');
    await look(prefetch);
    expectSeeOther(await comeBack('payment_token=tok_head', 'HEAD'), outcomeAt);
    expectSeeOther(await request(`${path}/return?payment_token=tok_prefetch`, prefetch), outcomeAt);
    expect(await api.countRows()).toEqual(before);
    expect(await triesOf(api, session)).toBeOneOf([0, undefined]);
  });

  test('says no reason after a card that the bank declined, takes another card, and counts no reload [D-§4, D-33, D-40]', async ({
    api,
  }) => {
    const { comeBack, give, lookAtOutcome, outcomeAt, session, attempts, newEvents } = await open(
      api,
      kind,
    );
    const id = `${kind.kind}-${session}`;
    const declined = kind.declined.map((card) => `payment_token=${card}-${id}`);
    const page = await give(declined[0]!);
    expect(alertOf(page)).toBe(kind.alert);
    expect(page.text.match(/aria-describedby="declined"/g)).toHaveLength(4);
    expect(page.text).not.toContain('card_declined');
    for (const query of [
      ...declined,
      'payment_error=incorrect_card_number&payment_error_id=a',
      `payment_token=tok-good-${id}`,
    ]) {
      const answers = await Promise.all(
        Array.from({ length: 3 }, () => untilAvailable(() => comeBack(query))),
      );
      for (const answer of [...answers, await comeBack(query)]) expectSeeOther(answer, outcomeAt);
    }
    expect(headingOf(await lookAtOutcome())).toBe(kind.done);
    expect(await triesOf(api, session)).toBe(kind.declined.length + 2);
    expect(await attempts()).toEqual(kind.attempts);
    expect(await newEvents()).toEqual(kind.events);
  });

  test.for([
    ['insufficient_funds', 'There was not enough money in the account. You can use another card.'],
    ['expired_card', 'The card has expired. You can use another card.'],
    ['issuer_unavailable', 'Try again later. You can use another card.'],
    ['processing_error', 'Try again later. You can use another card.'],
    ...['card_declined', 'stolen_card', 'lost_card', 'fraudulent', 'invalid_cvc'].map((code) => [
      code,
      'Check the details and try again, or use another card.',
    ]),
  ] as [string, string][])(
    'names the kind of the decline %s, and only what helps no thief [D-42]',
    async ([code, advice], { api }) => {
      const { give } = await open(api, kind);
      const page = await give(`payment_error=${code}&payment_error_id=1`);
      const [declined] = kind.alert.split(' Check');
      expect(alertOf(page)).toBe(`${declined} ${advice}`);
    },
  );

  test('marks the fields that the gateway reports as mistyped, ignores other names, and counts no try [D-61]', async ({
    api,
  }) => {
    const { comeBack, request, path, session } = await open(api, kind);
    const answer = await comeBack('mistyped=cvcThree%2CexpiryPast%2C%3Cb%3E');
    expectSeeOther(answer, `${path}?mistyped=expiryPast,cvcThree`);
    const page = await request(`${path}?mistyped=expiryPast,cvcThree`);
    expect(page.text).toContain('<title>Error: ');
    expect(alertOf(page)).toBe('Correct the marked fields. Nothing was charged.');
    expect(page.text.match(/<p class="problem" id="[^"]*">[^<]*/g)).toEqual([
      '<p class="problem" id="expiry-problem">This date is in the past. Check the expiry, or use another card.',
      '<p class="problem" id="cvc-problem">Enter the 3 digits on the back of the card.',
    ]);
    expect(await triesOf(api, session)).toBeOneOf([0, undefined]);
  });

  test('answers 503 while Temporal is unavailable, and a later load of the return URL takes the card [D-§8]', async ({
    api,
  }) => {
    const { comeBack, lookAtOutcome, path, outcomeAt, session } = await open(api, kind);
    const query = `payment_token=tok-good-later-${session}`;
    api.orders.faults.isDown = true;
    api.workflows.faults.isDown = true;
    const away = await comeBack(query);
    api.restore();
    expect(away.status).toBe(503);
    expect(away.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(away.text).toContain('Nothing is lost: reload it in a moment');
    expect(refreshOf(away)).toBe(`10; url=${ownReturn(path, query)}`);
    expectSeeOther(await comeBack(query), outcomeAt);
    expect(headingOf(await lookAtOutcome())).toBe(kind.done);
    expect(await triesOf(api, session)).toBe(1);
  });

  test('is opened by its token only at its own address [D-33]', async ({ api }) => {
    const { token } = await open(api, kind);
    for (const { kind: other } of KINDS.filter((it) => it !== kind)) {
      const page = visit(api, `${PUBLIC_URL}/${other}/${token}`);
      expect((await page.look()).status).toBe(404);
      expect((await page.comeBack('payment_token=tok_elsewhere')).status).toBe(404);
    }
  });
});

describe.each(CHARGING)('the $kind page', (kind) => {
  test('requests itself every 3 s and takes no second card while the outcome is unknown [D-33, D-40]', async ({
    api,
  }) => {
    const { comeBack, look, path, outcomeAt, session, attempts } = await open(api, kind);
    const query = `payment_token=tok_unknown_${session}`;
    const returned = await comeBack(query);
    expect([returned.status, headingOf(returned)]).toEqual([
      200,
      'Your payment is being processed',
    ]);
    expect(refreshOf(returned)).toBe(`3; url=${ownReturn(path, query)}`);
    const reopened = await look();
    expect(refreshOf(reopened)).toBe(`3; url=${outcomeAt}`);
    expect(hasCardForm(reopened)).toBe(false);
    await comeBack(`payment_token=tok_good_meanwhile_${session}`);
    expect(headingOf(await look())).toBe('Your payment is being processed');
    expect(await attempts()).toEqual(['UNKNOWN']);
  });
});
