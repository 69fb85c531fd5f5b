import { expect } from 'vitest';
import { test as apiTest, subscriptionBody } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { intentBody } from '../../support/fixtures/payments.ts';

const EMAIL = 'ÄNNE@Beispiel.example';
const LISTS = {
  customers: ['/customer', 'customerId'],
  subscriptions: ['/subscription', 'subscriptionId'],
  payments: ['/payments', 'xIntentId'],
} as const;

async function create(api: ApiEnvironment, path: string, body: object) {
  const answer = await api.call('POST', path, { body });
  expect(answer.status).toBe(200);
  return answer.json as Record<string, string>;
}

async function found(api: ApiEnvironment, list: keyof typeof LISTS, email: string) {
  const [path, id] = LISTS[list];
  const { status, json } = await api.call('GET', `${path}?email=${encodeURIComponent(email)}`);
  expect(status).toBe(200);
  return (json as { data: Record<string, unknown>[] }).data.map((record) => record[id]);
}

/** Creates two payers with one record in each list. Returns the first payer's ids by list. */
const test = apiTest.extend('made', { scope: 'file' }, async ({ api }) => {
  const records = async (email: string) => {
    const customerDetails = { email };
    const { customerId } = await create(api, '/customer/create', { customerDetails });
    const order = { customerId, customerDetails };
    const trial = { trialPeriodCount: 7, trialPeriodInterval: 'DAY' };
    const subscription = subscriptionBody({ ...order, ...trial });
    const { subscriptionId } = await create(api, '/subscription/create', subscription);
    const { xIntentId } = await create(api, '/payments/create-intent', intentBody(order));
    return { customers: customerId, subscriptions: subscriptionId, payments: xIntentId };
  };
  const made = await records(EMAIL);
  await records('anne@beispiel.example');
  return made;
});

const SPELLINGS = [
  'änne@beispiel.EXAMPLE',
  'a\u0308nne@beispiel.example',
  'A\u0308NNE@BEISPIEL.EXAMPLE',
  ' ÄNNE@Beispiel.example ',
];

test.for(
  (['customers', 'subscriptions', 'payments'] as const).flatMap((list) =>
    SPELLINGS.map((spelling) => [list, spelling] as const),
  ),
)(
  'the list of %s finds the e-mail address ÄNNE@Beispiel.example by the spelling %j [D-§7]',
  async ([list, spelling], { api, made }) => {
    expect(await found(api, list, spelling)).toEqual([made[list]]);
  },
);

test('a customer found by another spelling has the e-mail address as given [D-11, D-§7]', async ({
  api,
  made,
}) => {
  const { json } = await api.call('GET', '/customer?email=%C3%A4nne@beispiel.example');
  expect(json).toMatchObject({
    data: [{ customerId: made.customers, customerDetails: { email: EMAIL } }],
  });
});
