import { CURRENCIES } from '../../domain/currencies.ts';
import type { PublishedTestCard } from '../../gateways/port.ts';

/** What a merchant must know before the first call: `info.description`, in Markdown. */
export function describeApi(testCards: readonly PublishedTestCard[]): string {
  return [ESSENTIALS, testCardTable(testCards), currencyTable()].join('\n\n');
}

const ESSENTIALS = `
Payments and subscription billing. What is marked \`x-extension\` is an addition to the interface
1.0.0; it never changes what the rest answers.

## Authentication

HTTP Basic on every call: the key id (\`mk_test_…\` or \`mk_live_…\`) is the user, the secret
(\`sk_test_…\` or \`sk_live_…\`) the password. Test and live records never see each other. A record of
another merchant answers exactly as one that does not exist: 400 \`resource_not_found\`.

## Requests

JSON in UTF-8 with \`Content-Type: application/json\`, at most 64 kB. Fields this document does not
have are ignored. An optional field may be null, which means absent. A request that is not valid is
answered 400 \`bad_request\`, and the description names every field that is wrong. An unknown address
is 404 \`route_not_found\`, a known one with another method 405 \`method_not_allowed\`.

Each merchant has a share of requests per second (100 unless set otherwise); beyond it 429
\`rate_limit_exceeded\` with \`Retry-After\`. One subscription can be read 10 times a second: do not
poll, listen to events.

## Idempotency

Send an \`Idempotency-Key\` of your own with every POST, and repeat the request with the same key
until you have an answer: it is carried out once. The key belongs to the route, and its answer is kept
for 45 days; a replayed answer has the same bytes and the header \`Idempotent-Replayed: true\`. The
same key with another body is 422 \`idempotency_key_reused\`; while the first call still runs, 409
\`idempotency_key_in_use\`. After a 5xx, a 429, a status of PENDING or \`payment_outcome_pending\`
nothing is kept: the same key repeated gives the final answer.

## Money and time

Amounts are integers in the smallest unit of the currency (1999 is 19.99 USD, and 1,999 JPY); the
currencies and the bounds of amounts in them are listed below. Dates in requests and in events are
epoch milliseconds. Fields of format \`date-time\` are ISO 8601 in UTC. Billing dates are counted from
the first one: 31 January, 28 February, 31 March.

## A subscription

\`POST /subscription/create\`, then send the payer to \`fwdUrl\`. CREATED becomes ACTIVE when the first
payment succeeds, TRIALING when there is a trial and a payment method was saved. A declined cycle makes
it UNPAID; it is tried again after 4, 8, 12 and 24 hours unless the decline is final. PAUSED charges
nothing. After the last cycle, or when it is cancelled, it is ENDED. The payer comes back to
\`callbackUrl\` with \`subscription_id\` and \`status\` in the address: never a proof of payment.

## Events

Every event is POSTed as one flat JSON object to each configuration that subscribed to its type
(section *Webhooks*). Delivery is at least once: answer 2xx within 15 seconds, and use \`eventId\` to
recognise an event you have had. What is not received is sent again at 5 s, 5 min, 30 min, 2 h, 5 h,
10 h, 14 h, 20 h and 24 h. Events of one subscription come in the order of \`sequence\` as long as your
endpoint answers.

Verify every event on the raw bytes of the body. The key is the text of \`eventSigner\`, or, with the
prefix \`whsec_\`, the Base64-decoded rest. \`webhook-signature\` is that of Standard Webhooks and also
protects against replay; \`xpay-signature\` is Base64(HMAC-SHA512(body)).

## Declined payments

A decline is not an error: the call is answered 200, and \`errorCode\` carries a code of *DeclineCode*.

## Test clocks

With test credentials, create a clock, create subscriptions with its \`testClockId\`, let the payer pay
with a test card, and advance the clock: a year of billing happens in seconds, in order, webhooks
included.
`.trim();

function testCardTable(testCards: readonly PublishedTestCard[]): string {
  const rows = testCards.map(({ number, label }) => `| ${number} | ${label} |`);
  return folded('Test cards', ['| Number | |', '|---|---|', ...rows]);
}

/** Rules: D-02, D-03. */
function currencyTable(): string {
  const active = [...CURRENCIES.values()].filter((currency) => currency.active);
  return folded('Currencies and their bounds, in the smallest unit', [
    '| Code | Digits | Least | Most |',
    '|---|---|---|---|',
    ...active.map(
      ({ code, exponent, minimum, maximum }) =>
        `| ${code} | ${exponent} | ${minimum} | ${maximum} |`,
    ),
  ]);
}

function folded(title: string, lines: readonly string[]): string {
  return ['<details>', `<summary>${title}</summary>`, '', ...lines, '', '</details>'].join('\n');
}
