import { subscriptionBody } from '../../support/api-environment.ts';
import { json, UNKNOWN_SUB } from '../../support/bad-input-case.ts';
import type { Case } from '../../support/bad-input-case.ts';

const CREATE = '/subscription/create';
/** A request to create a subscription: a valid body with `changes`. */
const create = (
  name: string,
  changes: Record<string, unknown>,
  description: string,
  code?: string,
): Case => ({
  name,
  path: CREATE,
  send: json(subscriptionBody(changes)),
  description,
  ...(code === undefined ? {} : { code }),
});
const INTEGER = 'must be an integer in the smallest currency unit';
const SUM_LIMIT = 'must make a sum of all cycles of at most 9007199254740991';
const SUM = `amount: ${SUM_LIMIT}; cycleCount: ${SUM_LIMIT}`;
const UNIT = 'must be one of DAY, WEEK, MONTH, YEAR';
const URL_TEXT = 'must be an absolute http or https URL';

/** Refused requests about subscriptions. */
export const SUBSCRIPTIONS: Case[] = [
  {
    name: 'a subscription without its required fields [IF-4.3]',
    path: CREATE,
    send: json({}),
    description:
      'amount: is required; currency: is required; customerDetails: is required; ' +
      'callbackUrl: is required; interval: is required; intervalCount: is required; ' +
      'cycleCount: is required',
  },
  create('an amount as text [D-01]', { amount: '1999' }, `amount: ${INTEGER}`),
  create('a fractional amount [D-01]', { amount: 19.99 }, `amount: ${INTEGER}`),
  create('a negative amount [D-01]', { amount: -1_999 }, 'amount: must be at least 101 in USD'),
  create('an amount that is an unsafe integer [D-01]', { amount: 2 ** 53 }, `amount: ${INTEGER}`),
  create('an amount of null [D-10a]', { amount: null }, 'amount: is required'),
  create(
    'an amount of exactly 1 USD [D-03]',
    { amount: 100 },
    'amount: must be at least 101 in USD',
  ),
  create(
    'an amount above the maximum [D-03]',
    { amount: 100_000_000 },
    'amount: must be at most 99999999 in USD',
  ),
  create(
    'amounts whose sum over all cycles is an unsafe integer [D-01]',
    { amount: 9_000_000_000_000, currency: 'IRR', interval: 'DAY', cycleCount: 1_200 },
    SUM,
  ),
  {
    name: 'a link whose cycles sum up to an unsafe integer [D-01]',
    path: '/subscription/link/merchant/generate-link',
    send: json({
      ...subscriptionBody({
        amount: 9_000_000_000_000,
        currency: 'IRR',
        interval: 'DAY',
        cycleCount: 1_200,
      }),
      metadata: null,
      expiryDate: 1_798_761_600_000,
    }),
    description: SUM,
  },
  create('a currency that is a number [D-02]', { currency: 840 }, 'currency: must be a string'),
  create(
    'a currency of two letters [D-02]',
    { currency: 'US' },
    'currency: must be a three-letter ISO 4217 currency code',
  ),
  create(
    'a currency that does not exist [D-02]',
    { currency: 'XXZ' },
    'currency: must be a supported ISO 4217 currency code',
  ),
  create(
    'a retired currency [D-02]',
    { currency: 'HRK' },
    'currency: must be a supported ISO 4217 currency code',
  ),
  create(
    'an upfront amount below the minimum [D-03]',
    { upfrontAmount: 1 },
    'upfrontAmount: must be at least 101 in USD',
  ),
  create(
    'an upfront amount with a trial [D-12, IF-4]',
    { upfrontAmount: 500, trialPeriodCount: 7, trialPeriodInterval: 'DAY' },
    'upfrontAmount: cannot be given with trialPeriodCount',
  ),
  create(
    'an upfront amount with a trial of 0 days [D-12]',
    { upfrontAmount: 500, trialPeriodCount: 0, trialPeriodInterval: 'DAY' },
    'upfrontAmount: cannot be given with trialPeriodCount',
  ),
  create(
    'a trial without its unit [D-12, IF-4]',
    { trialPeriodCount: 7 },
    'trialPeriodInterval: is required with trialPeriodCount',
  ),
  create(
    'a trial of 0 without its unit [D-12]',
    { trialPeriodCount: 0 },
    'trialPeriodInterval: is required with trialPeriodCount',
  ),
  create(
    'a trial with an unknown unit [D-12]',
    { trialPeriodCount: 7, trialPeriodInterval: 'HOUR' },
    `trialPeriodInterval: ${UNIT}`,
  ),
  create(
    'a trial of -1 days [IF-8]',
    { trialPeriodCount: -1, trialPeriodInterval: 'DAY' },
    'trialPeriodCount: must be an integer of at least 0',
  ),
  create(
    'a trial of more than ten years [D-06]',
    { trialPeriodCount: 11, trialPeriodInterval: 'YEAR' },
    'trialPeriodCount: must make a trial of at most 10 years',
  ),
  create('an unknown interval [IF-4.3]', { interval: 'month' }, `interval: ${UNIT}`),
  create(
    'an interval count of 0 [D-06]',
    { intervalCount: 0 },
    'intervalCount: must be an integer of at least 1',
  ),
  create(
    'an interval of more than ten years [D-06]',
    { intervalCount: 121 },
    'intervalCount: must be an integer from 1 to 120 for interval MONTH',
  ),
  create(
    'an interval count of 1.5 [D-06]',
    { intervalCount: 1.5 },
    'intervalCount: must be an integer of at least 1',
  ),
  create(
    'a cycle count of 0 [D-06]',
    { cycleCount: 0 },
    'cycleCount: must be an integer of at least 1',
  ),
  create(
    'a cycle count of 1,201 [D-06]',
    { cycleCount: 1_201 },
    'cycleCount: must be an integer from 1 to 1200',
  ),
  create(
    'a last billing date after 2199 [D-06]',
    { interval: 'YEAR', intervalCount: 10, cycleCount: 100 },
    'cycleCount: the last billing date must be before the year 2200',
  ),
  create('no callbackUrl [IF-4.3]', { callbackUrl: undefined }, 'callbackUrl: is required'),
  create('a relative callbackUrl [D-13]', { callbackUrl: '/back' }, `callbackUrl: ${URL_TEXT}`),
  create(
    'a callbackUrl that is a script [D-13]',
    { callbackUrl: 'javascript:alert(1)' },
    `callbackUrl: ${URL_TEXT}`,
  ),
  create(
    'a callbackUrl with a line break [D-13]',
    { callbackUrl: 'https://merchant.example/\nx' },
    `callbackUrl: ${URL_TEXT}`,
  ),
  create(
    'a callbackUrl without a host [D-13]',
    { callbackUrl: 'https:///path' },
    `callbackUrl: ${URL_TEXT}`,
  ),
  create(
    'a callbackUrl of 2,049 characters [D-13]',
    { callbackUrl: `https://merchant.example/${'x'.repeat(2_024)}` },
    'callbackUrl: must have at most 2048 characters',
  ),
  create(
    'a cancelUrl with another scheme [D-13]',
    { cancelUrl: 'ftp://x' },
    `cancelUrl: ${URL_TEXT}`,
  ),
  create('metadata that is a list [D-14]', { metadata: ['a'] }, 'metadata: must be an object'),
  create(
    'metadata of 51 pairs [IF-8]',
    { metadata: Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`k${at}`, 'v'])) },
    'metadata: must have at most 50 pairs',
  ),
  create(
    'a metadata key of 41 characters [IF-8]',
    { metadata: { ['k'.repeat(41)]: 'v' } },
    'metadata: must have keys of at most 40 characters',
  ),
  create(
    'a metadata value of 501 characters [IF-8]',
    { metadata: { order: 'v'.repeat(501) } },
    'metadata.order: must be a string of at most 500 characters',
  ),
  create(
    'metadata values that are not texts [IF-8]',
    { metadata: { a: 1, b: 'right', c: null } },
    'metadata.a: must be a string of at most 500 characters; ' +
      'metadata.c: must be a string of at most 500 characters',
  ),
  create(
    'phoneNumberRequired as text [IF-4.3]',
    { phoneNumberRequired: 'true' },
    'phoneNumberRequired: must be true or false',
  ),
  create(
    'an unknown locale [D-§7]',
    { locale: 'sv' },
    'locale: must be one of en, de, fr, es, pt, it, nl, ja, ar',
  ),
  create(
    'a productPage that is a text [IF-2.8]',
    { productPage: 'Tea' },
    'productPage: must be an object',
  ),
  create(
    'a product name that is a number [IF-2.8]',
    { productPage: { name: 7 } },
    'productPage.name: must be a string',
  ),
  create('a receiptId that is a number [IF-4.3]', { receiptId: 7 }, 'receiptId: must be a string'),
  create(
    'several invalid fields, named in field order [D-10]',
    {
      trialPeriodCount: 1,
      metadata: 'x',
      intervalCount: 0,
      currency: 'usdollar',
      amount: 0,
      customerDetails: { email: 'x' },
    },
    'amount: must be greater than 0; currency: must be a three-letter ISO 4217 currency code; ' +
      'customerDetails.email: must be an e-mail address; ' +
      'intervalCount: must be an integer of at least 1; ' +
      'trialPeriodInterval: is required with trialPeriodCount; metadata: must be an object',
  ),
  {
    name: 'a cancel command with a list of ids [IF-4.7]',
    path: '/subscription/merchant/cancel',
    send: json({ subscriptionId: [UNKNOWN_SUB] }),
    description: 'subscriptionId: must be a string',
  },
];
