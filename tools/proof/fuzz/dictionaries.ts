import type { Records } from './records.ts';

const DAY_MS = 86_400_000;

/** Share of cases in which a parameter gets a value of its dictionary instead of a generated one. */
const DICTIONARY_SHARE = 0.6;

/** TOML with values for Schemathesis: ids of existing records, and valid amounts and dates. */
export function dictionariesOf(records: Records): string {
  const values = {
    ...records,
    amounts: [101, 500, 1_999, 4_900],
    counts: [1, 2, 12],
    currencies: ['USD', 'EUR', 'GBP', 'jpy'],
    instants: [1, 30, 400].map((days) => Date.now() + days * DAY_MS),
  };
  type Dictionary = keyof typeof values;
  const bindings: Record<string, Dictionary> = {
    'path.subscriptionId': 'subscriptions',
    'body.subscriptionId': 'subscriptions',
    'path.customerId': 'customers',
    'body.customerId': 'customers',
    'body.pmId': 'paymentMethods',
    'path.xIntentId': 'intents',
    'body.xIntentId': 'intents',
    'path.setupMethodId': 'setupMethods',
    'path.testClockId': 'testClocks',
    'body.testClockId': 'testClocks',
    'body.amount': 'amounts',
    'body.newAmount': 'amounts',
    'body.intervalCount': 'counts',
    'body.cycleCount': 'counts',
    'body.newCycleCount': 'counts',
    'body.currency': 'currencies',
    'body.newNextPaymentDate': 'instants',
    'body.expiryDate': 'instants',
    'body.to': 'instants',
  };
  const binding = (dictionary: Dictionary): string =>
    `{ dictionary = "${dictionary}", probability = ${DICTIONARY_SHARE} }`;
  return [
    ...Object.entries(values).map(
      ([name, of]) => `[dictionaries.${name}]\nvalues = ${JSON.stringify(of)}\n`,
    ),
    '[parameters]',
    ...Object.entries(bindings).map(([place, name]) => `"${place}" = ${binding(name)}`),
    '',
    '[[operations]]',
    'include-operation-id = "cancelSubscription"',
    `parameters = { "body.subscriptionId" = ${binding('cancellable')} }`,
  ].join('\n');
}
