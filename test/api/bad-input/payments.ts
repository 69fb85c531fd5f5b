import { json, raw } from '../../support/bad-input-case.ts';
import type { Case } from '../../support/bad-input-case.ts';
import {
  intentBody,
  UNKNOWN_IDS,
  setupBody,
  tokenisedBody,
} from '../../support/fixtures/payments.ts';

/** Returns a function that builds a case: a request to `path` with a valid body and these changes. */
const malformed =
  (path: string, validBody: (changes: object) => object) =>
  (name: string, changes: object, description: string, code?: string): Case => ({
    name,
    path,
    send: json(validBody(changes)),
    description,
    ...(code === undefined ? {} : { code }),
  });

const ONE_TIME = '/subscription/merchant/one-time-charge';
const oneTime = malformed(ONE_TIME, (changes) => ({
  subscriptionId: UNKNOWN_IDS.subscription,
  amount: 500,
  currency: 'USD',
  ...changes,
}));

const TOKENISED = '/payments/charge-tokenised-pm';
const tokenised = malformed(TOKENISED, (changes) =>
  tokenisedBody({ customerId: UNKNOWN_IDS.customer, pmId: UNKNOWN_IDS.method }, changes),
);

const CREATE_INTENT = '/payments/create-intent';
const hosted = malformed(CREATE_INTENT, intentBody);

const REFUND = '/payments/merchant/refund';
const refund = malformed(REFUND, (changes) => ({ xIntentId: UNKNOWN_IDS.intent, ...changes }));

const SETUP = '/setup-method/create';
const setup = malformed(SETUP, setupBody);

const CANCEL = `/payments/cancel/${UNKNOWN_IDS.intent}`;

const INTEGER = 'must be an integer in the smallest currency unit';
const REFUND_AMOUNT = 'must be an integer of at least 1 in the smallest currency unit';
const URL_TEXT = 'must be an absolute http or https URL';
const NAMES = 'must be upper-case letters and underscores';
const CODE = 'must be a supported ISO 4217 currency code';

const emptyBody = (name: string, path: string, description: string): Case => ({
  name,
  path,
  send: json({}),
  description,
});

/** Refused requests about payments. */
export const PAYMENTS: Case[] = [
  emptyBody(
    'a one-time charge without its required fields [IF-4.10, D-35]',
    ONE_TIME,
    'subscriptionId: is required; amount: is required; currency: is required',
  ),
  oneTime(
    'a one-time charge of 49 cents [D-03]',
    { amount: 49 },
    'amount: must be at least 50 in USD',
  ),
  oneTime(
    'a one-time charge of more than the maximum [D-03]',
    { amount: 100_000_000 },
    'amount: must be at most 99999999 in USD',
  ),
  oneTime(
    'a one-time charge whose amount is a text [D-01]',
    { amount: '500' },
    `amount: ${INTEGER}`,
  ),
  oneTime(
    'a one-time charge in an unknown currency [D-02]',
    { currency: 'XXZ' },
    `currency: ${CODE}`,
  ),
  oneTime(
    'comments of 5,001 characters [IF-4.10]',
    { comments: 'x'.repeat(5_001) },
    'comments: must have at most 5000 characters',
  ),
  oneTime('comments that are a list [IF-4.10]', { comments: [] }, 'comments: must be a string'),
  oneTime(
    'a subscription id of 65 characters [D-21]',
    { subscriptionId: 'x'.repeat(65) },
    'subscriptionId: must have at most 64 characters',
  ),
  emptyBody(
    'a tokenised charge without its required fields [IF-4.12]',
    TOKENISED,
    'pmId: is required; customerId: is required; currency: is required; amount: is required',
  ),
  tokenised('a tokenised charge of 0 [D-03]', { amount: 0 }, 'amount: must be at least 50 in USD'),
  tokenised(
    'a tokenised charge whose amount is null [D-10a]',
    { amount: null },
    'amount: is required',
  ),
  tokenised(
    'metadata that holds a number [D-14]',
    { metadata: { order: 7 } },
    'metadata.order: must be a string of at most 500 characters',
  ),
  tokenised(
    'a storefront id of 256 characters [D-14]',
    { storeFrontId: 'x'.repeat(256) },
    'storeFrontId: must have at most 255 characters',
  ),
  tokenised(
    'a receipt id that is a number [D-10]',
    { receiptId: 7 },
    'receiptId: must be a string',
  ),
  emptyBody(
    'a hosted payment without its required fields [D-§7]',
    CREATE_INTENT,
    'amount: is required; currency: is required; callbackUrl: is required',
  ),
  hosted(
    'a hosted payment with a relative callbackUrl [D-13]',
    { callbackUrl: '/back' },
    `callbackUrl: ${URL_TEXT}`,
  ),
  hosted(
    'a hosted payment with a mailto cancelUrl [D-13]',
    { cancelUrl: 'mailto:a@b.c' },
    `cancelUrl: ${URL_TEXT}`,
  ),
  hosted(
    'a hosted payment with a payment method in lower case [D-43]',
    { paymentMethods: ['CARD', 'cash'] },
    `paymentMethods[1]: ${NAMES}`,
  ),
  hosted(
    'paymentMethods that is a text [D-43]',
    { paymentMethods: 'CARD' },
    'paymentMethods: must be an array',
  ),
  hosted('tokenise that is a text [D-§7]', { tokenise: 'true' }, 'tokenise: must be true or false'),
  emptyBody('a refund without an intent id [D-§7]', REFUND, 'xIntentId: is required'),
  ...[0, -1, 1.5, '0', '01', '1.5', '-5', ' 5', '9'.repeat(16), true, []].map((amount): Case =>
    refund(
      `a refund of ${JSON.stringify(amount)} [D-§7, D-01]`,
      { amount },
      `amount: ${REFUND_AMOUNT}`,
    ),
  ),
  refund('a refund of an empty string [D-10]', { amount: '' }, `amount: ${REFUND_AMOUNT}`),
  {
    name: 'a cancellation whose body is not JSON [D-10]',
    path: CANCEL,
    send: raw('xIntentId=1', { 'content-type': 'application/x-www-form-urlencoded' }),
    description: 'body: must be sent with Content-Type: application/json',
  },
];

/** Refused requests about setup sessions and saved payment methods. */
export const SETUPS: Case[] = [
  emptyBody(
    'a setup session without its required fields [IF-4.13]',
    SETUP,
    'currency: is required; billingDetails: is required; callbackUrl: is required',
  ),
  setup('a setup session in an unknown currency [D-02]', { currency: 'XXZ' }, `currency: ${CODE}`),
  setup(
    'billing details with an invalid e-mail address and country [D-11]',
    { billingDetails: { email: 'ada@', customerAddress: { country: 'GBR' } } },
    'billingDetails.email: must be an e-mail address; ' +
      'billingDetails.customerAddress.country: must be an ISO 3166 alpha-2 country code',
  ),
  setup(
    'a setup session with a callbackUrl without a host [D-13]',
    { callbackUrl: 'https://' },
    `callbackUrl: ${URL_TEXT}`,
  ),
  setup(
    'a setup session for an empty payment method [D-43]',
    { paymentMethods: [''] },
    `paymentMethods[0]: ${NAMES}`,
  ),
  setup(
    '21 payment methods [D-43]',
    { paymentMethods: Array.from({ length: 21 }, () => 'CARD') },
    'paymentMethods: must have at most 20 entries',
  ),
  setup(
    'phoneNumberRequired that is a number [IF-4.13]',
    { phoneNumberRequired: 1 },
    'phoneNumberRequired: must be true or false',
  ),
];
