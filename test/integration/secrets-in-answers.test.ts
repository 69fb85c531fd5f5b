import { randomBytes } from 'node:crypto';
import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { paymentMethods } from '../../db/schema/customers.ts';
import { createLogger } from '../../runtime/logger.ts';
import { orderWorkflowId } from '../../workflows/orders/messages.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { openPage, submitForm } from '../../tools/scripts/client/browser.ts';
import type { Page } from '../../tools/scripts/client/browser.ts';
import { dumpOf, formsOf, historyOf, savedMethod } from '../support/canaries.ts';
import { SESSION } from '../support/card-tokens.ts';
import { startOurProcess } from '../support/our-process.ts';
import { paymentsIn } from '../support/payments.ts';
import { openShop } from '../support/shop.ts';
import { enterAccount } from '../support/stripe-merchant.ts';
import { onStripe } from '../support/stripe.ts';
import { connectDevServer } from '../support/temporal-servers.ts';
import { createEnvironment } from '../support/test-environment.ts';
import { MONTHLY } from '../../tools/scripts/client/monthly.ts';

/** Secrets and card numbers in Stripe's answers. They may appear nowhere in our output or stored data. */

const CANARY = `canary${randomBytes(8).toString('hex')}`;
const KEY = `sk_test_${CANARY}`;

/** A number that Stripe's page accepts, one that the sandbox's form accepts, and one of Stripe's answers only. */
const NUMBERS = ['378282246310005', '5555555555554444', '4000056655665556'] as const;

const FORBIDDEN = [
  CANARY,
  ...NUMBERS,
  // The numbers in groups of four digits, as a form shows them.
  ...NUMBERS.map((number) => number.replaceAll(/(\d{4})(?=\d)/g, '$1 ')),
].flatMap(formsOf);

/** The text in the fields of Stripe's answers: the key and a card number. */
const SECRETIVE = `${KEY} for card ${NUMBERS[2]}`;
const errorOf = (type: string, code: string) => ({
  error: {
    type,
    code,
    message: `Refused: ${SECRETIVE}`,
    param: SECRETIVE,
    doc_url: `https://stripe.example/${SECRETIVE}`,
    request_log_url: `https://stripe.example/${SECRETIVE}`,
  },
});
const ERROR_ANSWERS: readonly [status: number, body: object | string][] = [
  [400, errorOf('invalid_request_error', 'parameter_invalid')],
  [401, errorOf('invalid_request_error', 'api_key_expired')],
  [402, errorOf('card_error', 'card_declined')],
  [404, errorOf('invalid_request_error', 'url_invalid')],
  [429, errorOf('invalid_request_error', 'rate_limit')],
  [500, errorOf('api_error', 'internal')],
  [502, `<html>${SECRETIVE}</html>`],
];

const test = onStripe.extend('place', { scope: 'file' }, async ({ world }, { onCleanup }) => {
  const server = await connectDevServer();
  const options = { runsActivities: false, stripeUrl: world.proxy.url };
  const env = await createEnvironment(server, options);
  const logged: string[] = [];
  const write = (line: string): void => void logged.push(line);
  const logger = createLogger({ name: 'api', level: 'trace' }, { write });
  const shop = await openShop({ ...env, logger });
  const worker = await startOurProcess('worker.ts', {
    ...env.variables,
    WORKER_QUEUES: 'charges,webhooks',
    LOG_LEVEL: 'trace',
  });
  onCleanup(async () => {
    await worker.stop();
    await shop.close();
    await env.close();
    await server.teardown();
  });
  return { env, shop, worker, logged };
});

test('no key and no card number of Stripe’s error answers appears in the answers, the pages, the database, the histories or the logs [D-20]', async ({
  world,
  place: { env, shop, worker, logged },
}) => {
  const seen: string[] = [];
  const payments = paymentsIn(env);
  const account = await world.account();
  await world.control('POST', 'accounts/key', {
    accountId: account.id,
    secretKey: KEY,
  });
  await enterAccount(env, { ...account, secretKey: KEY });
  const token = await env.token(NUMBERS[1]);
  const atSandbox = await env.gateway.saveMethod({ key: `save:${token}`, token, session: SESSION });
  expect(atSandbox).toMatchObject({ kind: 'saved', card: { lastFourDigit: '4444' } });
  const { customerId, paymentMethodId } = await savedMethod(env, NUMBERS[0]);
  await env.db
    .update(paymentMethods)
    .set({ status: 'LIVE' })
    .where(eq(paymentMethods.id, paymentMethodId));

  const { KEY_ID, SECRET } = shop.variables;
  const authorization = `Basic ${Buffer.from(`${KEY_ID}:${SECRET}`).toString('base64')}`;
  const intentIds: string[] = [];
  /** Has a saved card charged until Stripe has answered, and reads the payment. */
  const charge = async (): Promise<number> => {
    const ref = await payments.payment('tokenised', { customerId, paymentMethodId });
    intentIds.push(ref.intentId);
    await env.orders.ensureRunning('payment', { ...ref, token: null });
    await expect
      .poll(() => payments.attempts(ref))
      .toEqual([expect.not.stringContaining('SENDING')]);
    const path = `/payments/v2/get-intent/${ref.intentId}`;
    const response = await fetch(shop.url + path, { headers: { authorization } });
    seen.push(await response.text());
    return response.status;
  };
  const see = (page: Page): Page => {
    seen.push(page.html, page.url);
    return page;
  };
  const { fwdUrl, subscriptionId } = await shop.merchant.post<{
    fwdUrl: string;
    subscriptionId: string;
  }>('/subscription/create', MONTHLY);
  /** Opens Stripe's page for a card. */
  const open = async (): Promise<number> => {
    const page = see(await openPage(fwdUrl));
    return see(await submitForm(page, page.forms[0]!, {})).status;
  };
  /** Returns from Stripe's page without a cookie, and confirms. */
  const comeBack = async (token: string): Promise<number> => {
    const page = see(await openPage(`${fwdUrl}/return?payment_token=${token}`));
    return see(await submitForm(page, page.forms[0]!, {})).status;
  };
  const reached: string[] = [];
  for (const [status, body] of ERROR_ANSWERS) {
    await world.faults('DELETE', 'faults');
    await world.faults('POST', 'faults', { fault: 'answer', status, body, count: 1_000 });
    const statuses = await Promise.all([
      open(),
      ...([400, 402].includes(status) ? [charge()] : []),
      ...(status === 500 ? [comeBack('cs_test_another')] : []),
    ]);
    reached.push([status, ...statuses].join(' '));
  }
  await world.faults('DELETE', 'faults');
  expect(reached).toEqual([
    '400 503 200',
    '401 503',
    '402 503 200',
    '404 503',
    '429 503',
    '500 503 503',
    '502 503',
  ]);

  const histories = await Promise.all(
    [
      ...intentIds.map((id) => orderWorkflowId('payment', id)),
      subscriptionWorkflowId(subscriptionId),
    ].map((id) => historyOf(env, id)),
  );
  for (const history of histories) expect(history).toContain(env.merchantId);
  const dump = await dumpOf(env.databaseUrl);
  expect(dump).toContain(`stripe:${account.id}`);
  await worker.stop();
  const { output } = await worker.gone;
  const everything = [dump, ...histories, output, ...logged, ...seen].join('\n');
  expect(FORBIDDEN.filter((form) => everything.includes(form))).toEqual([]);
});
