import { describe, expect } from 'vitest';
import { subscriptionBody, test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { createMerchantWithCredential } from '../../../db/repositories/merchants/merchants.ts';
import { changeSettings } from '../../../db/repositories/merchants/settings.ts';
import { createClock } from '../../support/fixtures/test-clocks.ts';
import { subscriptionIn } from '../../support/fixtures/subscriptions.ts';

/** The future of a subscription under a script, with literal dates. */

const JAN_31 = Date.UTC(2027, 0, 31, 12);
const CHARGED = ['intent.created', 'intent.success', 'subscription.cycle_charged'];

const simulate = (api: ApiEnvironment, body: object) =>
  api.call('POST', '/subscription/simulate', { body });

const terms = (changes: object = {}) => ({
  ...subscriptionBody(),
  interval: 'MONTH',
  intervalCount: 1,
  cycleCount: 4,
  startDate: JAN_31,
  ...changes,
});

interface Step extends Record<string, unknown> {
  at: number;
  cycleNumber?: number;
}

const steps = ({ json }: { json: unknown }) => (json as { data: Step[] }).data;

/** One step in a line: instant, status, what, end of the payer's access. */
const lineOf = ({ at, status, what, currentPeriodEnd }: Step): string =>
  [at, currentPeriodEnd]
    .map((instant) =>
      instant === undefined ? '-' : new Date(Number(instant)).toISOString().slice(0, 16),
    )
    .toSpliced(1, 0, String(status), String(what))
    .join(' | ');

describe('a simulated subscription', () => {
  test('is charged on the dates of its calendar until its end [D-58, D-05]', async ({ api }) => {
    const answer = await simulate(api, terms());
    expect(answer.status).toBe(200);
    expect(steps(answer).map(lineOf)).toEqual([
      '2027-01-31T12:00 | CREATED | created | -',
      '2027-01-31T12:00 | ACTIVE | cycle 1 paid, 19.99 USD | 2027-02-28T12:00',
      '2027-02-28T12:00 | ACTIVE | cycle 2 paid, 19.99 USD | 2027-03-31T12:00',
      '2027-03-31T12:00 | ACTIVE | cycle 3 paid, 19.99 USD | 2027-04-30T12:00',
      '2027-04-30T12:00 | ENDED | cycle 4 paid, 19.99 USD | 2027-05-31T12:00',
    ]);
    expect(steps(answer).map(({ eventTypes }) => eventTypes)).toEqual([
      ['intent.created', 'subscription.created'],
      ['intent.success', 'subscription.cycle_charged', 'subscription.active'],
      CHARGED,
      CHARGED,
      [...CHARGED, 'subscription.ended'],
    ]);
    expect(steps(answer)[2]).toMatchObject({
      cycleNumber: 2,
      attempt: 1,
      amount: 1_999,
      currency: 'USD',
      trigger: 'scheduled',
      cause: 'its date had come: 2027-01-31T12:00:00.000Z + 1 month = 2027-02-28T12:00:00.000Z',
    });
    expect(answer.json).toMatchObject({
      status: 'ENDED',
      endReason: 'completed',
      isComplete: true,
    });
  });

  test('follows the outcomes and commands of its script, and names a refused command [D-58, D-30]', async ({
    api,
  }) => {
    const answer = await simulate(
      api,
      terms({
        trialPeriodCount: 10,
        trialPeriodInterval: 'DAY',
        script: [
          { cycle: 2, outcome: 'insufficient_funds', times: 2 },
          { at: Date.UTC(2027, 2, 20), command: 'edit', newAmount: 2_500 },
          { at: Date.UTC(2027, 2, 25), command: 'resume' },
          { at: Date.UTC(2027, 3, 1), command: 'cancel', atPeriodEnd: true },
        ],
      }),
    );
    expect(steps(answer).map(lineOf)).toEqual([
      '2027-01-31T12:00 | CREATED | created | -',
      '2027-01-31T12:00 | TRIALING | trial until 2027-02-10T12:00:00.000Z | 2027-02-10T12:00',
      '2027-02-02T12:00 | TRIALING | notice given: subscription.trial_ending | 2027-02-10T12:00',
      '2027-02-10T12:00 | ACTIVE | cycle 1 paid, 19.99 USD | 2027-03-10T12:00',
      '2027-03-10T12:00 | UNPAID | cycle 2 declined (insufficient_funds) | 2027-03-10T12:00',
      '2027-03-10T16:00 | UNPAID | cycle 2 declined (insufficient_funds) | 2027-03-10T12:00',
      '2027-03-11T00:00 | ACTIVE | cycle 2 paid, 19.99 USD | 2027-04-10T12:00',
      '2027-03-20T00:00 | ACTIVE | edited: amount 25.00 USD | 2027-04-10T12:00',
      '2027-03-25T00:00 | ACTIVE | resume refused | 2027-04-10T12:00',
      '2027-04-01T00:00 | ACTIVE | cancelled at 2027-04-10T12:00:00.000Z | 2027-04-10T12:00',
      '2027-04-10T12:00 | ENDED | ended (cancelled) | 2027-04-10T12:00',
    ]);
    expect(steps(answer)[4]).toMatchObject({
      errorCode: 'insufficient_funds',
      eventTypes: ['intent.created', 'intent.failed', 'subscription.unpaid'],
    });
    expect(steps(answer)[8]).toMatchObject({
      eventTypes: [],
      refusal: {
        errorCode: 'operation_not_allowed',
        errorDescription: 'The subscription is not cancelled.',
      },
    });
  });

  test('reads an empty field of its script as absent [D-58, D-10]', async ({ api }) => {
    const at = Date.UTC(2027, 1, 10);
    const pause = { at, cycle: '', outcome: '', times: '', command: 'pause', resumeAt: '' };
    const raw = JSON.stringify(terms({ script: [pause] }));
    const answer = await api.call('POST', '/subscription/simulate', { raw });
    expect(steps(answer).map(lineOf)).toEqual([
      '2027-01-31T12:00 | CREATED | created | -',
      '2027-01-31T12:00 | ACTIVE | cycle 1 paid, 19.99 USD | 2027-02-28T12:00',
      '2027-02-10T00:00 | PAUSED | paused | 2027-02-28T12:00',
    ]);
  });

  test('stays open for 24 hours after a decline in the checkout [D-58, D-§4]', async ({ api }) => {
    const answer = await simulate(api, terms({ script: [{ cycle: 1, outcome: 'card_declined' }] }));
    expect(steps(answer).map(lineOf)).toEqual([
      '2027-01-31T12:00 | CREATED | created | -',
      '2027-01-31T12:00 | CREATED | cycle 1 declined (card_declined) | -',
      '2027-02-01T12:00 | ENDED | ended (checkout_expired) | -',
    ]);
  });

  test('begins at the time of its test clock [D-58, D-60]', async ({ api }) => {
    const testClockId = await createClock(api, JAN_31);
    const { startDate: _, ...body } = terms({ testClockId, cycleCount: 1 });
    expect(steps(await simulate(api, body)).map(lineOf)).toEqual([
      '2027-01-31T12:00 | CREATED | created | -',
      '2027-01-31T12:00 | ENDED | cycle 1 paid, 19.99 USD | 2027-02-28T12:00',
    ]);
  });

  test('begins with the present state of a running subscription [D-58]', async ({ api }) => {
    const testClockId = await createClock(api, JAN_31);
    const { subscriptionId } = await subscriptionIn(api, 'ACTIVE', { testClockId, cycleCount: 3 });
    const before = await api.countRows();
    const answer = await simulate(api, {
      subscriptionId,
      script: [{ at: Date.UTC(2027, 2, 1), outcome: 'lost_card' }],
    });
    expect(steps(answer).map(lineOf)).toEqual([
      '2027-02-28T12:00 | ACTIVE | cycle 2 paid, 19.99 USD | 2027-03-31T12:00',
      '2027-03-31T12:00 | UNPAID | cycle 3 declined (lost_card) | 2027-03-31T12:00',
    ]);
    expect(answer.json).toMatchObject({ status: 'UNPAID', isComplete: true });
    expect(await api.countRows()).toEqual(before);
  });

  test('ends after 120 more cycles, and says that more follows [D-58]', async ({ api }) => {
    const answer = await simulate(api, terms({ cycleCount: 500, interval: 'DAY' }));
    const charges = steps(answer).filter(({ cycleNumber }) => cycleNumber !== undefined);
    expect(charges).toHaveLength(120);
    expect(answer.json).toMatchObject({
      status: 'ACTIVE',
      isComplete: false,
      nextPaymentDate: Date.UTC(2027, 4, 31, 12),
    });
  });

  test('is complete when the last of its 120 cycles is charged [D-58]', async ({ api }) => {
    const answer = await simulate(api, terms({ cycleCount: 120 }));
    expect(answer.json).toMatchObject({ status: 'ENDED', isComplete: true });
  });

  test.for<[string, object, string]>([
    ['no terms', {}, 'amount: is required without subscriptionId'],
    ['an unknown outcome', terms({ script: [{ cycle: 1, outcome: 'lost' }] }), 'script'],
    [
      'an outcome of nothing',
      terms({ script: [{ outcome: 'paid' }] }),
      'script[0]: must have outcome',
    ],
    [
      'a command without a date',
      terms({ script: [{ command: 'pause' }] }),
      'script[0]: must have outcome',
    ],
    [
      'both',
      terms({ script: [{ at: 1, command: 'pause', outcome: 'paid' }] }),
      'script[0]: must have',
    ],
    [
      'an edit of nothing',
      terms({ script: [{ at: JAN_31, command: 'edit' }] }),
      'script[0]: must have newAmount, newCycleCount, newNextPaymentDate or interval',
    ],
    [
      'an edit of half an interval',
      terms({ script: [{ at: JAN_31, command: 'edit', interval: 'YEAR' }] }),
      'script[0].newNextPaymentDate: is required to edit the interval; script[0].intervalCount: is required to edit the interval',
    ],
    [
      'an unpause without a date',
      terms({ script: [{ at: JAN_31, command: 'unpause' }] }),
      'script[0].newNextPaymentDate: is required',
    ],
    [
      'a misspelled member of its script',
      terms({ script: [{ cycle: 2, outcome: 'paid', time: 4 }] }),
      'script[0].time: is not a field of this request',
    ],
    [
      'a member that its command does not use',
      terms({ script: [{ at: JAN_31, command: 'cancel', newAmount: 5_000, times: 2 }] }),
      'script[0].times: is not a field of cancel; script[0].newAmount: is not a field of cancel',
    ],
    [
      'a command’s member at an outcome',
      terms({ script: [{ cycle: 2, outcome: 'paid', atPeriodEnd: true }] }),
      'script[0].atPeriodEnd: is not a field of an outcome',
    ],
    ['a misspelled field', terms({ trialPeriodDays: 14 }), 'trialPeriodDays: is not a field'],
    [
      'terms of a running subscription',
      { subscriptionId: 'sub_0002sSOLuQx1oB9bUeVtYw3c', amount: 5_000, startDate: JAN_31 },
      'amount: cannot be given with subscriptionId; startDate: cannot be given with subscriptionId',
    ],
    [
      'delays that nobody can read',
      terms({ retryPlan: ['soon'] }),
      'retryPlan: must be times like 4h or 2d (units d, h, m, s)',
    ],
    [
      'a wrong field of the request to create',
      terms({ callbackUrl: 'nowhere' }),
      'callbackUrl: must be an absolute http or https URL',
    ],
  ])('is refused with %s [D-58]', async ([, body, message], { api }) => {
    const answer = await simulate(api, body);
    expect([answer.status, (answer.json as { errorCode: string }).errorCode]).toEqual([
      400,
      'bad_request',
    ]);
    expect(answer.text).toContain(message);
  });

  test('follows the retry plan of the request in place of the merchant’s [D-58, D-30]', async ({
    api,
  }) => {
    const plan = {
      retryPlan: ['1d', '36h'],
      afterExhausted: 'end',
      unpaidFrom: 'retries_exhausted',
    };
    const script = [{ cycle: 2, outcome: 'insufficient_funds', times: 9 }];
    expect(
      steps(await simulate(api, terms({ ...plan, script })))
        .slice(2)
        .map(lineOf),
    ).toEqual([
      '2027-02-28T12:00 | ACTIVE | cycle 2 declined (insufficient_funds) | 2027-02-28T12:00',
      '2027-03-01T12:00 | ACTIVE | cycle 2 declined (insufficient_funds) | 2027-02-28T12:00',
      '2027-03-03T00:00 | ENDED | cycle 2 declined (insufficient_funds) | 2027-02-28T12:00',
    ]);
  });

  test('is charged as late as the merchant’s jitter says [D-58, D-59]', async ({ api }) => {
    const { db, pepper } = api;
    const merchant = await createMerchantWithCredential(db, { name: 'Late', mode: 'test', pepper });
    await changeSettings(db, merchant.merchantId, { jitterMs: 6 * 3_600_000 });
    const answer = await api.call('POST', '/subscription/simulate', {
      body: terms(),
      as: merchant,
    });
    const [, first = 0, second = 0, third = 0] = steps(answer).map(({ at }) => at);
    expect(first).toBe(JAN_31);
    const delayMs = second - Date.UTC(2027, 1, 28, 12);
    expect(delayMs).toBeGreaterThan(0);
    expect(delayMs).toBeLessThanOrEqual(6 * 3_600_000);
    expect(third - Date.UTC(2027, 2, 31, 12)).toBe(delayMs);
  });

  test('is not found under an unknown id [D-58]', async ({ api }) => {
    const body = { subscriptionId: 'sub_0002sSOLuQx1oB9bUeVtYw3c' };
    const { status, json } = await simulate(api, body);
    expect([status, (json as { errorCode: string }).errorCode]).toEqual([
      400,
      'resource_not_found',
    ]);
  });
});
