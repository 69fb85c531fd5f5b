import { chargeMinimum } from '../../domain/currencies.ts';
import type { PublishedTestCard } from '../../gateways/port.ts';
import { currencies } from '../fields.ts';

export function describeApi(testCards: readonly PublishedTestCard[]): string {
  return [ESSENTIALS, testCardTable(testCards), currencyTable()].join('\n\n');
}

const ESSENTIALS = `
Payments and subscription billing. An operation, field, header or event marked \`x-extension\` is an addition
to version 1.0.0 of the interface. Additions never change the meaning of unmarked parts.

## Authentication

HTTP Basic on every call. The user is the key id (\`mk_test_…\` or \`mk_live_…\`). The password is the
secret (\`sk_test_…\` or \`sk_live_…\`). Test records and live records are separate. A request for a record
of another merchant gets the same answer as for a record that does not exist: 400 \`resource_not_found\`.

## Requests

Send JSON in UTF-8 with \`Content-Type: application/json\`, at most 512 kB. Fields that are not in this
document are ignored, and the answer's header \`Ignored-Fields\` names them. Send \`Unknown-Fields: refuse\` to
have them refused: a misspelled \`trialPeriodCount\` then charges nobody. A member that an object has twice and an
unknown query parameter are refused. An optional field that is null or an empty string counts as absent. An invalid request is answered
400 \`bad_request\`, and \`errorDescription\` names every invalid field. An unknown path is answered 404
\`route_not_found\`. A known path with an unknown method is answered 405 \`method_not_allowed\`.

Each merchant may send 100 requests a second, unless another limit is configured. A request beyond the
limit is answered 429 \`rate_limit_exceeded\` with \`Retry-After\`. One subscription can be read or simulated
10 times a second. Of a merchant's lists and simulations, one runs at a time and 20 wait; further ones get the same
answer. Do not poll: subscribe to events.

## Idempotency

Send your own \`Idempotency-Key\` with every POST. Repeat the request with the same key until you have
an answer: the request is executed once. A key is valid for one route. Its answer is stored for 45 days; the
answer of a declined charge is stored for 24 hours.
A replayed answer has the same bytes and the header \`Idempotent-Replayed: true\`. The same key with
another body is answered 422 \`idempotency_key_reused\`. While the first call runs, a repeat is answered
409 \`idempotency_key_in_use\`. A 5xx, a 429, a status of PENDING and \`payment_outcome_pending\` are not
stored: repeat the request with the same key to get the final answer.

## Money and time

Amounts are integers in the smallest unit of the currency: 1999 is 19.99 USD, and 1,999 JPY. The
currencies and their smallest and largest amounts are listed below. Dates in requests and in events are
epoch milliseconds. Fields of format \`date-time\` are ISO 8601 in UTC. Every billing date is counted
from the first billing date: 31 January, 28 February, 31 March.

## A subscription

Call \`POST /subscription/create\`, then send the payer to \`fwdUrl\`. The subscription begins as CREATED.
It becomes ACTIVE when the first payment succeeds. With a trial it becomes TRIALING when a payment method
is saved. A declined cycle makes it UNPAID. The payment is retried after 4, 8, 12 and 24 hours unless the
decline is final. While PAUSED nothing is charged. The subscription is ENDED after the last cycle or when
it is cancelled. The payer's browser returns to \`callbackUrl\` with \`subscription_id\` and \`status\` in
the query. These parameters never prove a payment.

## Events

Every event is POSTed as one flat JSON object to each configuration that subscribed to its type
(section *Webhooks*). Delivery is at least once: answer 2xx within 15 seconds, and use \`eventId\` to
recognise duplicates. A failed delivery is repeated. The waits between two attempts are 5 s, 5 min,
30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h. Events of one subscription arrive in the order of
\`sequence\` as long as your endpoint answers. \`GET /events\` has every event, also what your endpoint missed.

Verify the signature of every event over the raw bytes of the body. \`webhook-signature\` is the signature
of Standard Webhooks and also protects against replay. If \`eventSigner\` begins with \`whsec_\`, its key
is the Base64-decoded text after this prefix; else its key is the whole text of \`eventSigner\`.
\`xpay-signature\` is Base64(HMAC-SHA512(body)). Its key is always the whole text of \`eventSigner\`.

## Declined payments

A decline is not an error. The call is answered 200, and \`errorCode\` is a *DeclineCode*.

## Test clocks

Test clocks need test credentials. Create a clock, create subscriptions with its \`testClockId\`, let the
payer pay with a test card, and advance the clock. A year of billing then happens in seconds, in order,
including webhooks. A link takes no test clock.
`.trim();

function testCardTable(testCards: readonly PublishedTestCard[]): string {
  const rows = testCards.map(({ number, label }) => `| ${number} | ${label} |`);
  return folded('Test cards', ['| Number | Result |', '|---|---|', ...rows]);
}

function currencyTable(): string {
  const active = [...currencies().values()]
    .filter((currency) => currency.active)
    .toSorted((a, b) => (a.code < b.code ? -1 : 1));
  return folded('Currencies with their smallest and largest amounts, in the smallest unit', [
    '| Code | Decimals | Minimum of a cycle | of another charge | Maximum |',
    '|---|---|---|---|---|',
    ...active.map(
      (currency) =>
        `| ${currency.code} | ${currency.exponent} | ${currency.minimum} | ${chargeMinimum(currency)} | ${currency.maximum} |`,
    ),
  ]);
}

function folded(title: string, lines: readonly string[]): string {
  return ['<details>', `<summary>${title}</summary>`, '', ...lines, '', '</details>'].join('\n');
}
