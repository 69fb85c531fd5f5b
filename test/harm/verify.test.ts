import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { afterAll, describe, expect } from 'vitest';
import { openBooks } from '../../cli/verify/books.ts';
import { checkBooks } from '../../cli/verify/invariants.ts';
import type { CheckResult } from '../../cli/verify/invariants.ts';
import { onDevServer as test } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import { SECRET } from '../support/webhook-environment.ts';
import { startWebhookReceiver } from '../../tools/scripts/client/webhook-receiver.ts';
import type { WebhookReceiver } from '../../tools/scripts/client/webhook-receiver.ts';
import { paymentsIn } from '../support/payments.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/**
 * Each case damages the database in one way, which `npm run verify` must report. The verifier compares books: the
 * records of our database, of the gateway, of the webhook receiver and of the API's clients.
 */

let receiver: WebhookReceiver;
let folder: string;
let refundId: string;
let intentId: string;

test.beforeAll(async ({ env }) => {
  receiver = await startWebhookReceiver({ secrets: [SECRET] });
  await env.subscribe(receiver.url, SECRET);
  folder = mkdtempSync(join(tmpdir(), 'perennial-verify-'));
  await runTwoSubscriptions(env);
  await rows(env, KEEP);
});

afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await receiver.close();
});

/**
 * Runs two subscriptions until 1 April 2027. One is paid every month; the other is declined from 1 March on.
 */
async function runTwoSubscriptions(env: TestEnvironment): Promise<void> {
  const createdAt = Date.parse('2027-01-01T00:00:00Z');
  const clock = await env.createClock(createdAt);
  const refs = [];
  for (const amountMinor of [1_001, 1_002]) {
    const ref = await env.create({ createdAt, testClockId: clock, terms: { amountMinor } });
    await payCheckout(env, ref);
    refs.push(ref);
  }
  await env.advance(clock, '2027-02-15T00:00:00Z');
  const { subscriptionId } = refs[1]!;
  await env.control('POST', '/control/declines', {
    subscriptionId,
    code: 'card_declined',
    count: 9,
  });
  await env.advance(clock, '2027-04-01T00:00:00Z');
  await refundFirstPayment(env);
  await receiver.waitFor(
    Number((await rows(env, 'select count(*) as n from outbox_event'))[0]!['n']),
  );
  await eventually(async () =>
    expect(await rows(env, `select 1 from webhook_delivery where state = 'PENDING'`)).toEqual([]),
  );
}

/** Refunds 4.00 USD of the first payment of the subscription that is paid every month. */
async function refundFirstPayment(env: TestEnvironment): Promise<void> {
  const [first] = await rows(
    env,
    `select id from payment_intent where amount_minor = 1001 and cycle_number = 1`,
  );
  const payments = paymentsIn(env);
  intentId = String(first?.['id']);
  const { ref } = await payments.refund({ merchantId: env.merchantId, intentId }, 400);
  expect(await env.orders.execute('refund', ref)).toEqual({ kind: 'refunded' });
  refundId = ref.refundId;
}

async function rows(env: TestEnvironment, query: string): Promise<Record<string, unknown>[]> {
  return [...(await env.db.execute<Record<string, unknown>>(sql.raw(query)))];
}

async function checkAll(
  env: TestEnvironment,
  books: { receiver?: string; client?: string } = {},
): Promise<CheckResult[]> {
  const opened = await openBooks({
    databaseUrl: env.databaseUrl,
    gateway: env.gatewayPlace,
    receiverBook: books.receiver ?? null,
    clientBook: books.client ?? null,
  });
  try {
    return await checkBooks(opened);
  } finally {
    await opened.close();
  }
}

function wrongOf(results: readonly CheckResult[]): string[] {
  return results.flatMap(({ invariant, wrong }) => wrong.map((line) => `${invariant}: ${line}`));
}

function book(name: string, lines: readonly object[]): string {
  const file = join(folder, name);
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  return file;
}

const receivedLines = () =>
  receiver.received.map(({ event, isStandardSignatureValid, isXpaySignatureValid }) => ({
    eventId: event.eventId,
    eventType: event.eventType,
    isSignatureValid: isStandardSignatureValid && isXpaySignatureValid,
  }));

test('the verifier checks every invariant and finds nothing wrong in correct books', async ({
  env,
}) => {
  const results = await checkAll(env, {
    receiver: book('right-webhooks', receivedLines()),
    client: book('right-answers', [
      { key: 'a', status: 200, body: '{}' },
      { key: 'a', status: 200, body: '{}' },
      { key: 'a', status: 503, body: 'again' },
      {
        key: 'b',
        status: 200,
        body: `{"refundId":"${refundId}","intentId":"${intentId}","amount":400}`,
      },
    ]),
  });
  expect(wrongOf(results)).toEqual([]);
  expect(results.map(({ invariant }) => invariant)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  expect(results.filter(({ counted }) => counted === null || counted === 0)).toEqual([]);
});

/** The SQL that damages the books, and the verifier's findings. */
interface Damage {
  name: string;
  damage: string;
  found: RegExp[];
}

const PAYING = `(select id from subscription where amount_minor = 1001)`;
const UNPAID = `(select id from subscription where amount_minor = 1002)`;
const SECOND_PAID = `(select id from payment_intent where subscription_id = ${PAYING} and cycle_number = 2)`;
const STATE_OF = (path: string, value: string) =>
  `jsonb_set(state::jsonb, '{${path}}', '${value}')`;

const FIRST_EVENT = `sequence = 1 and stream_id = ${PAYING}`;
const OTHER_AMOUNT = [
  `update payment_intent set amount_minor = 1999 where id = ${SECOND_PAID}`,
  `update payment_attempt set amount_minor = 1999 where intent_id = ${SECOND_PAID}`,
  `update sandbox_gateway.charge set amount_minor = 1999 where intent_id = ${SECOND_PAID}`,
].join(';');

const DAMAGES: Damage[] = [
  {
    name: 'a second charge of one intent under another key',
    damage: `insert into sandbox_gateway.charge (id, key, method_id, amount_minor, currency, merchant_id,
        intent_id, subscription_id, payment_method_id, outcome, created_at)
      select 'ch_twice', 'charge:twice', method_id, amount_minor, currency, merchant_id, intent_id,
        subscription_id, payment_method_id, outcome, created_at - 60000
      from sandbox_gateway.charge where intent_id = ${SECOND_PAID}`,
    found: [
      /^1: in_\w+ was charged 2 times in the gateway's book$/,
      /^1: the gateway charged charge:twice, but no attempt requested it$/,
    ],
  },
  {
    name: 'a paid attempt that is recorded as declined',
    damage: `update payment_attempt set state = 'DECLINED' where intent_id = ${SECOND_PAID}`,
    found: [
      /^1: attempt charge:in_\w+:1 is DECLINED here and succeeded in the gateway's book$/,
      /^1: in_\w+ is SUCCESS with 0 attempts that succeeded$/,
    ],
  },
  {
    name: 'a refunded amount without a refund',
    damage: `update payment_intent set refunded_minor = 5 where id = ${SECOND_PAID}`,
    found: [/^10: in_\w+: its row has 5 refunded, its refunds 0$/],
  },
  {
    name: 'a refund that exists only at the gateway',
    damage: `insert into sandbox_gateway.refund (id, key, charge_id, amount_minor, status, created_at)
      select 're_lost', 're_lost', id, 7, 'succeeded', 0 from sandbox_gateway.charge where intent_id = ${SECOND_PAID}`,
    found: [
      /^10: charge:in_\w+:1: the gateway refunded 7, our refunds have 0$/,
      /^10: the gateway refunded re_lost, but no refund requested it$/,
    ],
  },
  {
    name: 'a refund that the gateway does not have',
    damage: 'delete from sandbox_gateway.refund',
    found: [
      /^10: charge:in_\w+:1: the gateway refunded 0, our refunds have 400$/,
      /^10: refund refund:rf_\w+ of 400 is SUCCEEDED here, and the gateway has none$/,
    ],
  },
  {
    name: 'a refund whose event has another amount',
    damage: `update outbox_event set body = replace(body, '"refundedAmount":400', '"refundedAmount":399')
      where type = 'intent.refunded'`,
    found: [
      /^10: refund rf_\w+ of 400 is SUCCEEDED, and its events told 399 refunded and 0 failed$/,
    ],
  },
  {
    name: 'a row with another payment method than the ledger’s',
    damage: `update subscription set state = ${STATE_OF('paymentMethodId', '"pmt_another"')} where id = ${PAYING}`,
    found: [
      /^8: sub_\w+: its row has paymentMethodId "pmt_another", by the ledger it is "pmt_\w+"$/,
    ],
  },
  {
    name: 'a command without a result that no open attempt will settle',
    damage: `update subscription_command set result = null where subscription_id = ${PAYING}`,
    found: [
      /^8: sub_\w+: its command \S+ \(completeCheckout\) has no result, and no attempt is open for it$/,
    ],
  },
  {
    name: 'a renewal that was not charged',
    damage: `update subscription set state = ${STATE_OF('nextIndex', '1')} where id = ${PAYING}`,
    found: [
      /^2: sub_\w+ is ACTIVE and cycle 5 was due at 2027-02-01 00:00:00$/,
      /^8: sub_\w+: its row has nextIndex 1, by the ledger it is 4$/,
    ],
  },
  {
    name: 'a cycle that was charged before its date',
    damage: `update payment_intent set created_at = created_at - interval '1 day' where id = ${SECOND_PAID}`,
    found: [/^2: sub_\w+: cycle 2 fell due at 2027-02-01 .* and was started at 2027-01-31 /],
  },
  {
    name: 'a due date that is not in the calendar',
    damage: `update payment_intent set due_at = due_at - interval '3 days' where id = ${SECOND_PAID}`,
    found: [
      /^2: sub_\w+: cycle 2 fell due at 2027-01-29 .*, by its calendar at 2027-02-01 /,
      /^8: sub_\w+: attempt 1 of in_\w+ has dueAt 1801180800000, by the ledger it is 1801440000000$/,
    ],
  },
  {
    name: 'attempts on a paused subscription',
    damage: `update outbox_event set type = 'subscription.paused'
      where type = 'subscription.active' and stream_id = ${PAYING}`,
    found: Array.from(
      { length: 3 },
      () =>
        /^2: sub_\w+: an attempt on cycle [234] was started at 2027-0[234]-01 .*, after subscription.paused at 2027-01-01 /,
    ),
  },
  {
    name: 'a retry that was not made',
    damage: `update subscription set state = ${STATE_OF('owed,nextRetryAt', '1804000000000')} where id = ${UNPAID}`,
    found: [
      /^2: sub_\w+ is UNPAID and its retry was due at 2027-03-02 /,
      /^8: sub_\w+: its row has owed.nextRetryAt 1804000000000, by the ledger it is null$/,
    ],
  },
  {
    name: 'a cancelled subscription that has not ended after its period',
    damage: `update subscription set state = jsonb_set(${STATE_OF('currentPeriodEndAt', '1801440000000')},
      '{cancelAtPeriodEnd}', 'true') where id = ${PAYING}`,
    found: [
      /^2: sub_\w+ is ACTIVE, but it was cancelled at the end of its period, 2027-02-01 /,
      /^8: sub_\w+: its row has currentPeriodEndAt 1801440000000, by the ledger it is 1809129600000$/,
      /^8: sub_\w+: its row has cancelAtPeriodEnd true, by the ledger it is false$/,
    ],
  },
  {
    name: 'a pause that has not ended after its date',
    damage: `update subscription set status = 'PAUSED', state = jsonb_set(
      ${STATE_OF('status', '"PAUSED"')}, '{resumeAt}', '1801440000000') where id = ${UNPAID}`,
    found: [
      /^2: sub_\w+ is PAUSED, but its pause was to end at 2027-02-01 /,
      /^8: sub_\w+: its row has status "PAUSED", by the ledger it is "UNPAID"$/,
      /^8: sub_\w+: its row has resumeAt 1801440000000, by the ledger it is null$/,
      /^8: sub_\w+ is PAUSED, but its last event says UNPAID$/,
    ],
  },
  {
    name: 'a gap in the cycle numbers',
    damage: `update payment_intent set cycle_number = 9 where id = ${SECOND_PAID}`,
    found: [
      /^2: sub_\w+: cycle 3 follows cycle 1$/,
      /^2: sub_\w+: cycle 9 follows cycle 4$/,
      /^2: sub_\w+: cycle 9 fell due at 2027-02-01 .*, by its calendar at 2027-09-01 /,
    ],
  },
  {
    name: 'a charge of another amount at the gateway',
    damage: `update sandbox_gateway.charge set amount_minor = 1_999 where intent_id = ${SECOND_PAID}`,
    found: [/^3: charge:in_\w+:1: the gateway charged 1999 USD, but 1001 USD was owed$/],
  },
  {
    name: 'an amount in every book that differs from the agreed amount',
    damage: OTHER_AMOUNT,
    found: [
      /^3: sub_\w+: cycle 2 is 1999 USD, agreed were 1001 USD$/,
      /^8: sub_\w+: attempt 1 of in_\w+ has amountMinor 1999, by the ledger it is 1001$/,
    ],
  },
  {
    name: 'a cycle count above the number of paid cycles',
    damage: `update subscription set cycles_charged = 5 where id = ${PAYING}`,
    found: [
      /^4: sub_\w+ has 5 paid cycles in its row, 4 paid intents and imported cycles$/,
      /^4: sub_\w+: its columns have ACTIVE, 5 of 12 cycles; its state has ACTIVE, 4 of 12$/,
      /^5: sub_\w+: 5 cycles paid, 4 cycle_charged events$/,
    ],
  },
  {
    name: 'an ended subscription without a reason',
    damage: `update subscription set status = 'ENDED', state = ${STATE_OF('status', '"ENDED"')} where id = ${PAYING}`,
    found: [
      /^8: sub_\w+: its row has status "ENDED", by the ledger it is "ACTIVE"$/,
      /^8: sub_\w+ is ENDED, but its last event says ACTIVE$/,
    ],
  },
  {
    name: 'a state that cannot be read',
    damage: `update subscription set state = ${STATE_OF('terms,interval', '["MONTH"]')} where id = ${PAYING}`,
    found: [
      /^9: the recorded state of sub_\w+ cannot be read: terms.interval must be one of DAY, WEEK, MONTH, YEAR$/,
    ],
  },
  {
    name: 'a sequence number without an event',
    damage: `update event_stream set last_sequence = last_sequence + 1 where id = ${PAYING}`,
    found: [/^5: sub_\w+ has \d+ events, numbered 1 to \d+, and counts \d+$/],
  },
  {
    name: 'a payment without its event',
    damage: `update outbox_event set type = 'intent.created' where type = 'intent.success'
      and body::json->>'intentId' = ${SECOND_PAID}`,
    found: [
      /^5: in_\w+ is SUCCESS and has 0 intent.success events$/,
      /^5: in_\w+ has 2 intent.created events$/,
    ],
  },
  {
    name: 'an eleventh decline of one card in 24 h',
    damage: `insert into payment_intent select (jsonb_populate_record(i, '{"id": "in_eleven", "kind": "tokenised",
        "status": "FAILED", "subscription_id": null, "cycle_number": null, "succeeded_at": null}')).*
      from payment_intent i where id = ${SECOND_PAID};
      insert into payment_attempt select (jsonb_populate_record(a, jsonb_build_object('id', 'att_eleven' || n,
        'intent_id', 'in_eleven', 'attempt_number', n, 'gateway_key', 'charge:in_eleven:' || n, 'state', 'DECLINED',
        'gateway_charge_id', null, 'error_code', 'card_declined', 'created_at', a.created_at + n * interval '2 hours'))).*
      from payment_attempt a, generate_series(1, 11) n where intent_id = ${SECOND_PAID}`,
    found: [
      /^5: in_eleven has 0 intent.created events$/,
      /^11: charge:in_eleven:11 is unpaid attempt 11 on pmt_\w+ in 24 h, 11 in 30 days$/,
    ],
  },
  {
    name: 'an event without a delivery',
    damage: `update webhook_config set updated_at = updated_at - interval '1 hour';
      delete from webhook_delivery where ${FIRST_EVENT}`,
    found: [/^5: evt_\w+ \([a-z._]+\) has no delivery to whc_\w+$/],
  },
  {
    name: 'an event that is not in the feed',
    damage: `delete from feed_entry where stream_id = ${PAYING} and first_sequence = 1`,
    found: [/^5: evt_\w+ is in 0 entries of the feed$/, /^5: evt_\w+ is in 0 entries of the feed$/],
  },
  {
    name: 'a feed in which a stream is not in sequence',
    damage: `update feed_entry set position = 1000000 + first_sequence, mark = 1 where stream_id = ${PAYING};
      update feed_entry set position = 900000 where stream_id = ${PAYING}
        and first_sequence = (select max(first_sequence) from feed_entry where stream_id = ${PAYING})`,
    found: [/^5: the feed has event \d+ of sub_\w+ before an earlier one$/],
  },
  {
    name: 'a paid cycle without its entry in the ledger',
    damage: `delete from subscription_entry where facts->>'intentId' = ${SECOND_PAID}`,
    found: [/^8: sub_\w+: version 7 follows version 3$/],
  },
  {
    name: 'a notice that was given twice, and has no event',
    damage: `insert into subscription_entry (merchant_id, subscription_id, version, at, status, kind, actor, facts)
      select merchant_id, id, 900 + n, '2027-01-01', status, 'notice_given', 'schedule', '{"notice":
        "subscription.renewal_upcoming", "chargeAt": 1804000000000, "amountMinor": 1, "dueAt": 1800000000000}'
      from subscription, generate_series(1, 2) n where id = ${PAYING}`,
    found: [
      /^8: sub_\w+: version 901 follows version \d+$/,
      /^8: sub_\w+: subscription.renewal_upcoming was given 2 times for the charge of 2027-03-02/,
      /^8: sub_\w+: 2 entries and 0 events say subscription.renewal_upcoming$/,
    ],
  },
  {
    name: 'a charge that was made before its notice had its days',
    damage: `insert into subscription_entry (merchant_id, subscription_id, version, at, status, kind, actor, facts)
      select s.merchant_id, s.id, 900, '2027-01-01', s.status, 'notice_given', 'schedule', json_build_object(
        'notice', 'subscription.renewal_upcoming', 'chargeAt', (a.cause->>'dueAt')::bigint, 'amountMinor', 1,
        'dueAt', 1, 'chargeFromAt', 4000000000000)
      from subscription s join payment_attempt a on a.intent_id = ${SECOND_PAID} where s.id = ${PAYING}`,
    found: [
      /^8: sub_\w+: version 900 follows version \d+$/,
      /^8: att_\w+: its charge of .+ was made before the notice had its days$/,
      /^8: sub_\w+: 1 entries and 0 events say subscription.renewal_upcoming$/,
    ],
  },
  {
    name: 'an attempt whose outcome is unknown for more than a day',
    damage: `update payment_attempt set state = 'UNKNOWN', sent_at = array[now() - interval '28 hours'],
        unanswered_at = now() - interval '27 hours'
      where intent_id = ${SECOND_PAID}`,
    found: [
      /^1: in_\w+ is SUCCESS with 0 attempts/,
      /^7: attempt charge:in_\w+:1 is UNKNOWN since /,
    ],
  },
  {
    name: 'a late charge whose refund is refused',
    damage: `insert into refund (merchant_id, id, intent_id, late_attempt_id, gateway_charge_id, gateway_key,
        state, amount_minor, currency, created_at)
      select merchant_id, 'rf_late', intent_id, id, 'ch_late', 'late', 'REFUSED', amount_minor, currency, now()
      from payment_attempt where intent_id = ${SECOND_PAID}`,
    found: [
      /^1: late charge ch_late of attempt charge:in_\w+:1 has a refund of 1001 that is REFUSED$/,
    ],
  },
  {
    name: 'a manual review whose decision has not settled the attempt',
    damage: `insert into payment_review (merchant_id, subject_id, reason, outcome, decided_at)
      select merchant_id, id, 'why', 'not_charged', now() - interval '1 hour' from payment_attempt
      where intent_id = ${SECOND_PAID};
      update payment_attempt set state = 'REVIEW' where intent_id = ${SECOND_PAID}`,
    found: [
      /^1: in_\w+ is SUCCESS with 0 attempts/,
      /^7: att_\w+ was decided \(not_charged\) at .* but is not booked$/,
    ],
  },
  {
    name: 'an overdue delivery',
    damage: `update webhook_delivery set state = 'PENDING', next_attempt_at = now() - interval '1 hour'
      where ${FIRST_EVENT}`,
    found: [/^7: event evt_\w+ for whc_\w+ was due at /],
  },
  {
    name: 'a subscription without a workflow',
    damage: `update subscription set workflow_started_at = null, inserted_at = now() - interval '1 hour' where id = ${PAYING}`,
    found: [/^7: sub_\w+ has no confirmed workflow since /],
  },
  {
    name: 'a subscription that lags behind its test clock',
    damage: `update subscription set clock_reached_at = clock_reached_at - interval '1 minute',
      updated_at = now() - interval '1 hour' where id = ${PAYING}`,
    found: [
      /^7: sub_\w+ has reached 2027-03-31 23:59:00\+00, but its clock's target is 2027-04-01 00:00:00\+00$/,
    ],
  },
  {
    name: 'a forbidden change of status',
    damage: `update outbox_event set body = replace(body, '"status":"ACTIVE"', '"status":"PAUSED"')
      where type = 'subscription.active' and stream_id = ${PAYING}`,
    found: [
      /^8: sub_\w+ is ACTIVE, but its last event says PAUSED$/,
      /^8: sub_\w+ went from CREATED to PAUSED$/,
    ],
  },
];

/** The tables that a case may damage. */
const DAMAGED = [
  'subscription',
  'subscription_command',
  'subscription_entry',
  'payment_intent',
  'payment_attempt',
  'payment_review',
  'refund',
  'event_stream',
  'outbox_event',
  'feed_entry',
  'webhook_config',
  'webhook_delivery',
  'sandbox_gateway.charge',
  'sandbox_gateway.refund',
];
const keptName = (table: string) => `kept.${table.replace('.', '_')}`;
const KEEP = [
  'create schema kept',
  ...DAMAGED.map((table) => `create table ${keptName(table)} as table ${table}`),
].join(';');
/** Writes the kept rows again. Foreign keys are not checked in a replica. */
const REPAIR = [
  'set local session_replication_role = replica',
  ...DAMAGED.flatMap((table) => [
    `delete from ${table}`,
    `insert into ${table} overriding system value table ${keptName(table)}`,
  ]),
].join(';');

describe('the verifier reports', () => {
  test.for(DAMAGES)('$name', async ({ damage, found }, { env }) => {
    await rows(env, damage);
    try {
      const wrong = wrongOf(await checkAll(env));
      expect(wrong).toHaveLength(found.length);
      for (const [index, line] of wrong.entries()) expect(line).toMatch(found[index]!);
    } finally {
      await rows(env, REPAIR);
    }
  });

  test('nothing after the repair of every damage', async ({ env }) =>
    expect(wrongOf(await checkAll(env))).toEqual([]));

  test('an event that the receiver did not accept, an unknown event and a bad signature', async ({
    env,
  }) => {
    const [first, second, ...rest] = receivedLines();
    const lines = [
      { ...first!, isAcknowledged: false },
      { ...second!, isSignatureValid: false },
      ...rest,
      { eventId: 'evt_made_up', eventType: 'intent.success', isSignatureValid: true },
    ];
    expect(wrongOf(await checkAll(env, { receiver: book('wrong-webhooks', lines) }))).toEqual([
      `5: ${first!.eventId} (${first!.eventType}) is DELIVERED but not in the receiver's book`,
      ...[
        `5: the receiver got ${second!.eventId} (${second!.eventType}): its signature is invalid`,
        '5: the receiver got evt_made_up (intent.success): the event does not exist',
      ].toSorted(),
    ]);
  });

  test('an idempotency key that got two different answers', async ({ env }) => {
    const client = book('wrong-answers', [
      { key: 'a', status: 200, body: '{"n":1}' },
      { key: 'a', status: 200, body: '{"n":2}' },
    ]);
    expect(wrongOf(await checkAll(env, { client }))).toEqual(['6: key a has 2 different answers']);
  });
});
