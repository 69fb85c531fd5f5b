import { readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eq } from 'drizzle-orm';
import { describe, expect, inject, onTestFinished } from 'vitest';
import { recordDispute } from '../../db/repositories/payments/disputes.ts';
import { paymentAttempts } from '../../db/schema/payments.ts';
import { paymentMethods } from '../../db/schema/customers.ts';
import { explainCommand } from '../../cli/explain/command.ts';
import { reviewCommand } from '../../cli/review/command.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { newMethodCommand } from '../support/card-tokens.ts';
import { onDevServer as test } from '../support/environment.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import { runCommand } from '../support/run-command.ts';
import type { Shop } from '../support/shop.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/** A life of 36 cycles, as `GET /subscription/charges` and `GET /subscription/timeline` tell it. */

const at = (date: string): number => Date.parse(date);
const JANUARY = '2027-01-31T12:00:00.000Z';
const HOUR = 3_600_000;

interface Charge extends Record<string, unknown> {
  cycleNumber: number;
  attempt: number;
  xIntentId: string;
  status: string;
  trigger: string;
  gatewayKey: string;
  cause: { text: string };
  sentAt: string[];
  settledAt: string;
}

/** Reads every page. */
async function pagesOf<Row>(shop: Shop, path: string, limit: number): Promise<Row[]> {
  const rows: Row[] = [];
  for (let offset = ''; ;) {
    const page = await shop.merchant.get<{ data: Row[]; metadata: { offset?: string } }>(
      `${path}?limit=${limit}${offset && `&offset=${offset}`}`,
    );
    rows.push(...page.data);
    if (page.metadata.offset === undefined) return rows;
    offset = page.metadata.offset;
  }
}

/** Lives the life on the sandbox gateway, to its end. */
async function live(env: TestEnvironment, shop: Shop) {
  const { merchantId } = env;
  const clock = await env.createClock(at(JANUARY));
  const ref = await env.create({
    createdAt: at(JANUARY),
    testClockId: clock,
    terms: { cycleCount: 36 },
  });
  const { subscriptionId } = ref;
  const path = `/subscription/charges/${subscriptionId}`;
  const post = (route: string, body: object = {}) =>
    shop.merchant.post(`/subscription/${route}`, { subscriptionId, ...body });
  const decline = (code: string, count: number) =>
    env.control('POST', '/control/declines', { subscriptionId, code, count });
  const charged = async (cycleNumber: number) =>
    (await pagesOf<Charge>(shop, path, 100)).find(
      (charge) => charge.cycleNumber === cycleNumber && charge.status === 'SUCCESS',
    );
  const setMethod = async (gatewayMethodId: string) => {
    const { paymentMethodId } = await env.state(ref);
    const isMethod = eq(paymentMethods.id, paymentMethodId ?? '');
    const [method] = await env.db.select().from(paymentMethods).where(isMethod);
    await env.db.update(paymentMethods).set({ gatewayMethodId }).where(isMethod);
    return method?.gatewayMethodId ?? '';
  };

  await payCheckout(env, ref);
  // Cycle 2: two declines, then the second retry of the plan.
  await decline('insufficient_funds', 2);
  await env.advance(clock, '2027-03-02T12:00:00Z');
  // Cycle 3: another amount, and later a dispute.
  await post('edit', { newAmount: 2_500 });
  await env.advance(clock, '2027-04-01T00:00:00Z');
  // Cycle 4: after a pause, on a new calendar.
  await post('merchant/pause');
  await env.advance(clock, '2027-05-01T00:00:00Z');
  await post('merchant/unpause', { newNextPaymentDate: at('2027-05-10T00:00:00Z') });
  await env.advance(clock, '2027-05-11T00:00:00Z');
  // Cycle 5: a hard decline, then another card.
  await decline('lost_card', 1);
  await env.advance(clock, '2027-06-11T00:00:00Z');
  await env.execute(ref, newMethodCommand(await env.token('5555555555554444')));
  // Cycle 6: a manual retry, and a refund of a part.
  await decline('card_declined', 1);
  await env.advance(clock, '2027-07-10T01:00:00Z');
  await post('manual-retry');
  const xIntentId = (await charged(6))?.xIntentId;
  await shop.merchant.post('/payments/merchant/refund', { xIntentId, amount: 1_000 });
  const disputed = await charged(3);
  const [attempt] = await env.db
    .select()
    .from(paymentAttempts)
    .where(eq(paymentAttempts.gatewayKey, String(disputed?.gatewayKey)));
  await recordDispute(
    env.db,
    attempt!,
    'dp_of_the_bank',
    {
      gatewayChargeId: String(attempt?.gatewayChargeId),
      amountMinor: 2_500,
      currency: 'USD',
      reason: 'fraudulent',
      status: 'LOST',
      openedAt: at('2027-07-11T00:00:00Z'),
    },
    at('2027-07-20T00:00:00Z'),
  );
  await env.workflows.recheck(ref);
  // Cycle 7: a decline, a manual retry that a person must settle, then the plan's retry.
  await decline('card_declined', 1);
  await env.advance(clock, '2027-08-10T01:00:00Z');
  const gatewayMethodId = await setMethod('');
  await env.execute(ref, { kind: 'manualRetry', commandId: 'retry-of-august' });
  await setMethod(gatewayMethodId);
  const [inReview] = await env.db
    .select()
    .from(paymentAttempts)
    .where(eq(paymentAttempts.state, 'REVIEW'));
  await runCommand(
    reviewCommand,
    {
      DATABASE_URL: env.databaseUrl,
      TEMPORAL_ADDRESS: inject('temporalAddress'),
      TASK_QUEUE_PREFIX: env.taskQueuePrefix,
    },
    ['settle', String(inReview?.id), '--not-charged', '--by', 'Ada', '--note', 'asked the bank'],
  );
  await expect.poll(async () => (await env.state(ref)).openAttempt).toBeNull();
  await env.advance(clock, '2030-06-11T00:00:00Z');
  expect(await env.state(ref)).toMatchObject({ status: 'ENDED', cyclesCharged: 36 });
  return { ref, merchantId, path };
}

/** One charge in a line: cycle, attempt, trigger, status, who settled it. */
const lineOf = ({ cycleNumber, attempt, trigger, status, settledBy }: Charge): string =>
  [`${cycleNumber}.${attempt}`, trigger, status, settledBy].join(' ');

describe('a life of 36 cycles', () => {
  test('has one record for each charge in the gateway’s book, with its cause, which no deleted history changes [D-57]', async ({
    env,
    shop,
  }) => {
    const { ref, path } = await live(env, shop);
    const charges = await pagesOf<Charge>(shop, path, 7);

    const book = await env.book(ref);
    // The attempt in review never reached the gateway.
    const sent = charges.filter(({ settledBy }) => settledBy !== 'person');
    expect(sent.map(({ gatewayKey }) => gatewayKey).toSorted()).toEqual(
      book.map(({ key }) => key).toSorted(),
    );
    expect(charges.slice(0, 16).map(lineOf)).toEqual([
      '1.1 checkout SUCCESS gateway',
      '2.1 scheduled FAILED gateway',
      '2.2 automatic_retry FAILED gateway',
      '2.3 automatic_retry SUCCESS gateway',
      '3.1 scheduled SUCCESS gateway',
      '4.1 scheduled SUCCESS gateway',
      '5.1 scheduled FAILED gateway',
      '5.2 new_method SUCCESS gateway',
      '6.1 scheduled FAILED gateway',
      '6.2 manual_retry SUCCESS gateway',
      '7.1 scheduled FAILED gateway',
      '7.2 manual_retry FAILED person',
      '7.3 automatic_retry SUCCESS gateway',
      '8.1 scheduled SUCCESS gateway',
      '9.1 scheduled SUCCESS gateway',
      '10.1 scheduled SUCCESS gateway',
    ]);
    expect(charges).toHaveLength(42);
    expect(charges.slice(13).every(({ status }) => status === 'SUCCESS')).toBe(true);

    const causes = Object.fromEntries(
      charges.map(({ cycleNumber, attempt, cause }) => [`${cycleNumber}.${attempt}`, cause]),
    );
    expect(causes['1.1']).toEqual({
      text: 'the payer gave a card in the checkout',
      actor: 'payer',
      rule: 'payer',
    });
    expect(causes['2.1']).toEqual({
      text: 'its date had come: 2027-01-31T12:00:00.000Z + 1 month = 2027-02-28T12:00:00.000Z',
      actor: 'schedule',
      rule: 'due_date',
      anchor: JANUARY,
      index: 1,
      interval: 'MONTH',
      intervalCount: 1,
    });
    expect(causes['2.3']).toEqual({
      text: 'retry 2 of 4 of the retry plan: 2027-02-28T16:00:00.000Z + 8 h = 2027-03-01T00:00:00.000Z',
      actor: 'retry_plan',
      rule: 'retry_plan',
      plannedAt: '2027-03-01T00:00:00.000Z',
      retry: 2,
      retries: 4,
      previousAt: '2027-02-28T16:00:00.000Z',
    });
    expect(causes['4.1']?.text).toBe(
      'its date had come: 2027-05-10T00:00:00.000Z, date 0 of its calendar',
    );
    expect(causes['5.2']?.text).toBe('the payer gave another payment method');
    expect(causes['6.2']).toMatchObject({ rule: 'command', actor: 'merchant' });
    expect(causes['7.2']).toEqual({
      text: 'the merchant asked for it, by the command retry-of-august',
      actor: 'merchant',
      rule: 'command',
      commandId: 'retry-of-august',
    });
    expect(causes['36.1']?.text).toBe(
      'its date had come: 2027-05-10T00:00:00.000Z + 32 months = 2030-01-10T00:00:00.000Z',
    );
    const third = charges.find(({ cycleNumber }) => cycleNumber === 3);
    expect(third).toMatchObject({
      amount: 2_500,
      disputes: [{ amount: 2_500, reason: 'fraudulent', status: 'LOST' }],
      refunds: [],
    });
    expect(charges[9]).toMatchObject({ refunds: [{ amount: 1_000, status: 'SUCCEEDED' }] });
    expect(charges.find(({ cycleNumber }) => cycleNumber === 2)).toMatchObject({
      errorCode: 'insufficient_funds',
      errorMessage: 'The account does not hold enough money for this payment.',
    });
    const times = charges.map(({ sentAt, settledAt }) => at(settledAt) - at(sentAt[0] ?? ''));
    expect(times.every((ms) => ms >= 0 && ms < HOUR)).toBe(true);
    expect(charges.map(({ sentAt }) => sentAt.length)).toEqual(charges.map(() => 1));

    const timelinePath = path.replace('charges', 'timeline');
    const timeline = await pagesOf<{ what: string; actor: string; refunds?: object[] }>(
      shop,
      timelinePath,
      9,
    );
    expect(
      timeline.flatMap(({ what, refunds }) => (refunds ? [[what, refunds.length]] : [])),
    ).toEqual([['cycle 6 paid, 25.00 USD', 1]]);
    expect(timeline.map(({ what, actor }) => `${what} (${actor})`).slice(0, 21)).toEqual([
      'created (merchant)',
      'cycle 1 paid, 19.99 USD (payer)',
      'cycle 2 declined (insufficient_funds) (schedule)',
      'cycle 2 declined (insufficient_funds) (retry_plan)',
      'cycle 2 paid, 19.99 USD (retry_plan)',
      'edited: amount 25.00 USD (merchant)',
      'cycle 3 paid, 25.00 USD (schedule)',
      'paused (merchant)',
      'unpaused, next payment 2027-05-10T00:00:00.000Z (merchant)',
      'cycle 4 paid, 25.00 USD (schedule)',
      'cycle 5 declined (lost_card) (schedule)',
      'payment method replaced (payer)',
      'cycle 5 paid, 25.00 USD (payer)',
      'cycle 6 declined (card_declined) (schedule)',
      'manual retry accepted (merchant)',
      'cycle 6 paid, 25.00 USD (merchant)',
      'the dispute of a payment was lost, 25.00 USD (gateway)',
      'cycle 7 declined (card_declined) (schedule)',
      'manual retry accepted (merchant)',
      'a payment needs a person (gateway)',
      'cycle 7 declined (processing_error) (operator)',
    ]);
    expect(timeline.slice(21).map(({ what }) => what)).toEqual(
      Array.from({ length: 30 }, (_, index) => `cycle ${index + 7} paid, 25.00 USD`),
    );

    const explain = (...args: string[]) =>
      runCommand(explainCommand, { DATABASE_URL: env.databaseUrl }, args);
    const told = await explain(ref.subscriptionId);
    const lines = told.stdout.split('\n');
    expect(lines.slice(0, 4)).toEqual([
      `${ref.subscriptionId} of ${env.merchantId}`,
      'ENDED: ended (completed).',
      '25.00 USD every month, 36 of 36 cycles paid.',
      `On test clock ${(await env.state(ref)).testClockId}.`,
    ]);
    expect(lines).toContain('Next: nothing, it has ended.');
    expect(lines).toContain(
      '  2.3  2027-03-01 00:00  19.99 USD  paid: retry 2 of 4 of the retry plan: 2027-02-28T16:00:00.000Z + 8 h = 2027-03-01T00:00:00.000Z',
    );
    expect(lines.filter((line) => /^ {2}\d+\.\d /.test(line))).toHaveLength(42);
    expect(lines).toContain('       refund of 10.00 USD on 2027-07-10 01:00: SUCCEEDED');
    expect(lines).toContain(
      '  2027-07-10 01:00            refund of 10.00 USD for cycle 6: SUCCEEDED',
    );
    expect(lines).toContain('       dispute of 25.00 USD: LOST, fraudulent');

    expect(lines).toContain('By the rules, this ledger leads to this state and to these charges.');
    expect(await explain('--check')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\d+ subscriptions, 0 differences from their ledgers.\n$/),
    });

    const earlier = (await explain(ref.subscriptionId, '--at', '2027-04-15')).stdout.split('\n');
    expect(earlier.slice(1, 3)).toEqual([
      'PAUSED: nothing is charged until it is unpaused.',
      '25.00 USD every month, 3 of 36 cycles paid.',
    ]);
    expect(earlier).toContain('Next: nothing until a command.');
    expect(earlier.filter((line) => /^ {2}\d+\.\d /.test(line))).toHaveLength(5);
    expect(earlier.filter((line) => /^ {2}2027/.test(line)).at(-1)).toBe(
      '  2027-04-01 00:00  PAUSED    paused: the merchant asked for it (merchant)',
    );

    const page = join(tmpdir(), `${ref.subscriptionId}.html`);
    onTestFinished(() => rmSync(page, { force: true }));
    await explain(ref.subscriptionId, '--html', page);
    const html = readFileSync(page, 'utf8');
    expect(html.match(/<circle /g)).toHaveLength(42);
    expect(html).toContain('2030-01-10 00:00  ENDED     cycle 36 paid, 25.00 USD');
    expect(html).not.toMatch(/src=|href=/);

    await env.client.workflowService.deleteWorkflowExecution({
      namespace: env.client.options.namespace,
      workflowExecution: { workflowId: subscriptionWorkflowId(ref.subscriptionId) },
    });
    expect(await pagesOf(shop, path, 7)).toEqual(charges);
    expect(await pagesOf(shop, timelinePath, 9)).toEqual(timeline);
    expect(await env.book(ref)).toEqual(book);
  });
});
