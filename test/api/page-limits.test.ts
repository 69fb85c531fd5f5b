import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { randomToken } from '../../domain/ids.ts';
import { createApiWorld, PUBLIC_URL } from './api-world.ts';
import type { ApiWorld } from './api-world.ts';
import {
  expectSeeOther,
  hasCardForm,
  headingOf,
  sessionIn,
  triesOf,
  visit,
} from './page-visits.ts';
import { intentBody, makeHosted, readIntent } from './payment-fixtures.ts';
import { createSubscription, readSubscription } from './subscription-fixtures.ts';

let world: ApiWorld;

beforeAll(async () => {
  world = await createApiWorld({ trustedProxies: 1 });
});
afterAll(() => world.close());

let refusals = 0;
/** The return query of a card that the tokeniser refused. */
function refusal(): string {
  refusals += 1;
  return `payment_error=invalid_cvc&payment_error_id=${refusals}`;
}

/** Tries `count` declined cards from one address, each on a new payment. */
async function decline(address: string, count: number, target: ApiWorld = world): Promise<void> {
  for (let card = 0; card < count; card += 1) {
    const { fwdUrl } = await makeHosted(target);
    await visit(target, fwdUrl, address).give(refusal());
  }
}

describe('the limit of five cards a session', () => {
  test('locks a checkout after five cards; it stays CREATED until it expires [D-§4]', async () => {
    const subscription = await createSubscription(world);
    const { give, comeBack, look, path } = visit(world, subscription.fwdUrl);
    for (let card = 1; card <= 4; card += 1) {
      expect(hasCardForm(await give(`payment_token=tok_card_declined_five_${card}`))).toBe(true);
    }
    const locked = await give(refusal());
    expect([locked.status, headingOf(locked)]).toEqual([403, 'This page takes no more cards']);
    expect(locked.text).toContain('Ask Acme Ltd for a new link if you want to try again.');
    expect(locked.text).toContain('status=CREATED">Return to Acme Ltd</a>');

    const sent = world.workflows.calls.length;
    expectSeeOther(await comeBack('payment_token=tok_good_sixth_checkout'), path);
    expect(world.workflows.calls).toHaveLength(sent);
    expect(await readSubscription(world, subscription)).toMatchObject({ status: 'CREATED' });

    world.clock.aheadMs += 24 * 3_600_000 + 1;
    const expired = await look();
    world.clock.aheadMs = 0;
    expect([expired.status, headingOf(expired)]).toEqual([410, 'This checkout has expired']);
  });

  test('lets the fifth card pay', async () => {
    const subscription = await createSubscription(world);
    const { give } = visit(world, subscription.fwdUrl);
    for (let card = 1; card <= 4; card += 1) await give(refusal());
    await give('payment_token=tok_good_fifth_checkout');
    expect(await readSubscription(world, subscription)).toMatchObject({ status: 'ACTIVE' });
  });

  test('locks a hosted payment after five cards, and does not charge a sixth one', async () => {
    const { fwdUrl, xIntentId } = await makeHosted(world);
    const { give, comeBack, path } = visit(world, fwdUrl);
    for (let card = 1; card <= 4; card += 1) await give(refusal());
    const locked = await give('payment_token=tok-card_declined-five');
    expect([locked.status, headingOf(locked)]).toEqual([403, 'This page takes no more cards']);
    expectSeeOther(await comeBack('payment_token=tok_good_sixth_payment'), path);
    expect(await readIntent(world, xIntentId)).toMatchObject({ status: 'FAILED' });
  });

  test('lets five of ten parallel cards be tried', async () => {
    const { fwdUrl, xIntentId } = await makeHosted(world);
    const { look, comeBack } = visit(world, fwdUrl);
    const session = sessionIn(await look());
    await Promise.all(
      Array.from({ length: 10 }, (_, card) =>
        comeBack(`payment_token=tok-card_declined-at_once-${card}`),
      ),
    );
    expect(await triesOf(world, session)).toBe(5);
    const orders = world.payments.calls.filter(({ order }) =>
      JSON.stringify(order).includes(xIntentId),
    );
    expect(orders).toHaveLength(5);
  });

  test('counts a refusal once over reloads, and a new refusal as another card', async () => {
    const { fwdUrl } = await makeHosted(world);
    const { look, give } = visit(world, fwdUrl);
    const session = sessionIn(await look());
    const same = refusal();
    for (let load = 0; load < 6; load += 1) await give(same);
    expect(await triesOf(world, session)).toBe(1);
    await give(refusal());
    expect(await triesOf(world, session)).toBe(2);
    // Refusals without an id count as one.
    for (let load = 0; load < 6; load += 1) await give('payment_error=invalid_cvc');
    expect(await triesOf(world, session)).toBe(3);
    expect(hasCardForm(await look())).toBe(true);
  });
});

describe('the limit of ten declined cards an hour from one address', () => {
  test('refuses the next card and every card form to this address only', async () => {
    const address = '203.0.113.1';
    const paid = visit(world, (await makeHosted(world)).fwdUrl, address);
    await paid.give('payment_token=tok_pays_before_the_limit');
    await decline(address, 10);

    const { fwdUrl, xIntentId } = await makeHosted(world);
    const next = visit(world, fwdUrl, address);
    const refused = await next.comeBack('payment_token=tok_good_from_a_bad_place');
    expect([refused.status, headingOf(refused)]).toEqual([429, 'Too many tries']);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(3_500);
    expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(3_600);
    expect(await readIntent(world, xIntentId)).toMatchObject({ status: 'CREATED' });

    const subscription = await createSubscription(world);
    expect((await visit(world, subscription.fwdUrl, address).look()).status).toBe(429);
    expect((await next.look()).status).toBe(429);
    // A paid page is still shown, and the refused token pays from another address.
    expect(headingOf(await paid.look())).toBe('Thank you: your payment was received');
    const elsewhere = visit(world, fwdUrl);
    await elsewhere.give('payment_token=tok_good_from_a_bad_place');
    expect(await readIntent(world, xIntentId)).toMatchObject({ status: 'SUCCESS' });
  });

  test('does not count reloads of declined cards or cards that pay', async () => {
    const address = '203.0.113.2';
    await decline(address, 8);
    const { give, comeBack } = visit(world, (await makeHosted(world)).fwdUrl, address);
    await give('payment_token=tok-card_declined-reloaded');
    for (let load = 0; load < 5; load += 1)
      await comeBack('payment_token=tok-card_declined-reloaded');
    const paid = await give('payment_token=tok_pays_after_reloads');
    expect(headingOf(paid)).toBe('Thank you: your payment was received');
    // Nine cards count up to here.
    await decline(address, 1);
    expect((await visit(world, (await makeHosted(world)).fwdUrl, address).look()).status).toBe(429);
  });

  test('lets a card still pay that was handed over before the limit was reached', async () => {
    const address = '203.0.113.3';
    const { fwdUrl, xIntentId } = await makeHosted(world);
    const { comeBack, path } = visit(world, fwdUrl, address);
    world.payments.faults.isDown = true;
    expect((await comeBack('payment_token=tok_handed_on')).status).toBe(503);
    world.payments.faults.isDown = false;
    await decline(address, 10);
    expectSeeOther(await comeBack('payment_token=tok_handed_on'), path);
    expect(await readIntent(world, xIntentId)).toMatchObject({ status: 'SUCCESS' });
  });

  test('counts an IPv6 /64 network as one address, and an IPv4-mapped address as IPv4', async () => {
    for (let host = 1; host <= 10; host += 1) await decline(`2001:db8:1:2::${host}`, 1);
    const { fwdUrl } = await makeHosted(world);
    expect((await visit(world, fwdUrl, '2001:db8:1:2:ffff::1').look()).status).toBe(429);
    expect((await visit(world, fwdUrl, '2001:db8:1:3::1').look()).status).toBe(200);
    await decline('::ffff:203.0.113.4', 10);
    expect((await visit(world, fwdUrl, '203.0.113.4').look()).status).toBe(429);
  });

  test('ignores the X-Forwarded-For entries before the trusted proxy’s own', async () => {
    for (let card = 1; card <= 10; card += 1) await decline(`10.0.0.${card}, 203.0.113.5`, 1);
    const { fwdUrl } = await makeHosted(world);
    expect((await visit(world, fwdUrl, '10.9.9.9, 203.0.113.5').look()).status).toBe(429);
    expect((await visit(world, fwdUrl, '10.0.0.1').look()).status).toBe(200);
  });

  test('ignores X-Forwarded-For without a trusted proxy and counts the connecting address', async () => {
    const bare = await createApiWorld();
    try {
      for (let card = 1; card <= 10; card += 1) await decline(`198.51.100.${card}`, 1, bare);
      const made = await bare.call('POST', '/payments/create-intent', { body: intentBody() });
      const { fwdUrl } = made.json as { fwdUrl: string };
      expect((await visit(bare, fwdUrl, '192.0.2.77').look()).status).toBe(429);
    } finally {
      await bare.close();
    }
  });
});

describe('the limit of twenty unknown pages a minute from one address', () => {
  test('refuses every page to the address, and not to other addresses', async () => {
    const address = '203.0.113.6';
    const { fwdUrl } = await makeHosted(world);
    const kinds = ['checkout', 'payment', 'setup', 'update-method'];
    for (let guess = 0; guess < 20; guess += 1) {
      const url = `${PUBLIC_URL}/${kinds[guess % 4]}/${randomToken(randomBytes)}`;
      expect((await visit(world, url, address).look()).status).toBe(404);
    }
    const guess = await visit(
      world,
      `${PUBLIC_URL}/payment/${randomToken(randomBytes)}`,
      address,
    ).look();
    expect(guess.status).toBe(429);
    const refused = await visit(world, fwdUrl, address).look();
    expect(refused.status).toBe(429);
    expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(60);
    expect((await visit(world, fwdUrl, '203.0.113.7').look()).status).toBe(200);
  });

  test('does not count pages that exist', async () => {
    const { fwdUrl } = await makeHosted(world);
    const page = visit(world, fwdUrl);
    for (let look = 0; look < 25; look += 1) expect((await page.look()).status).toBe(200);
  });
});
