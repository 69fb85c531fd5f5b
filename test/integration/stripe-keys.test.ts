import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import { orderWorkflowId } from '../../workflows/orders/messages.ts';
import { dumpOf, formsOf, historyOf, savedMethod } from '../support/canaries.ts';
import { runCommand } from '../support/run-command.ts';
import { merchantCommand } from '../../cli/merchant/command.ts';
import { startOurProcess } from '../support/our-process.ts';
import { paymentsIn } from '../support/payments.ts';
import { onStripe } from '../support/stripe.ts';
import { connectDevServer } from '../support/temporal-servers.ts';
import { createEnvironment } from '../support/test-environment.ts';

/**
 * A text in each key and in the webhook secret. The text may appear nowhere in stored data or output: the operator
 * sees only the last four characters of a key.
 */
const CANARY = `canary${randomBytes(8).toString('hex')}`;
const KEYS = [1, 2, 3].map((number) => `sk_test_${CANARY}_${number}`);
const WRONG_KEY = `sk_test_${CANARY}_wrong`;
const WEBHOOK_SECRET = `whsec_${CANARY}`;

const FORMS = formsOf(CANARY);

/** A test environment whose charges run in a worker process, with a Stripe double. */
const test = onStripe.extend('place', { scope: 'file' }, async ({ world }, { onCleanup }) => {
  const server = await connectDevServer();
  const options = { runsActivities: false, stripeUrl: world.proxy.url };
  const env = await createEnvironment(server, options);
  const worker = await startOurProcess('worker.ts', {
    ...env.variables,
    WORKER_QUEUES: 'charges,webhooks',
    LOG_LEVEL: 'trace',
  });
  onCleanup(async () => {
    await worker.stop();
    await env.close();
    await server.teardown();
  });
  return { env, worker };
});

test('no key and no webhook secret appears in the database, the histories, the logs or the answers [D-20]', async ({
  world,
  place: { env, worker },
}) => {
  const { merchantId } = env;
  const payments = paymentsIn(env);
  const seen: string[] = [];
  const command = async (input: string, ...args: string[]) => {
    const environment = { ...env.variables, CREDENTIAL_PEPPER: 'pepper'.repeat(6) };
    const { code, ...output } = await runCommand(merchantCommand, environment, args, input);
    seen.push(output.stdout, output.stderr);
    return code;
  };
  const enter = (key: string) =>
    command(key, 'gateway', merchantId, 'stripe', '--key-file', '-', '--json');
  const account = await world.account();
  const giveAccount = (secretKey: string | undefined) =>
    world.control('POST', 'accounts/key', { accountId: account.id, secretKey });

  await giveAccount(KEYS[0]);
  expect(await enter(WRONG_KEY)).toBe(1);
  expect(await enter(KEYS[0] ?? '')).toBe(0);
  const setSecret = ['gateway', merchantId, 'stripe', '--webhook-secret-file', '-'];
  expect(await command(WEBHOOK_SECRET, ...setSecret)).toBe(0);

  const method = await savedMethod(env);
  const order = async () => payments.payment('tokenised', method);
  const pay = async (ref: Awaited<ReturnType<typeof order>>) => {
    const outcome = await env.orders.execute('payment', { ...ref, token: null });
    seen.push(JSON.stringify(outcome));
    return outcome.kind;
  };
  const [first, second, third] = [await order(), await order(), await order()];
  expect(await pay(first)).toBe('succeeded');

  await giveAccount(KEYS[1]);
  expect(await enter(KEYS[1] ?? '')).toBe(0);
  expect(await pay(second)).toBe('succeeded');

  // Stripe refuses the stored key until the operator enters the next one.
  await giveAccount(KEYS[2]);
  const paying = pay(third);
  await expect.poll(() => payments.attempts(third)).toEqual(['1 UNSENT']);
  expect(await enter(KEYS[2] ?? '')).toBe(0);
  await env.orders.recheck('payment', { ...third, token: null });
  expect(await paying).toBe('succeeded');
  expect(await payments.attempts(third)).toEqual(['1 SUCCEEDED']);

  const dump = await dumpOf(env.databaseUrl);
  expect(dump).toContain(`stripe:${account.id}`);
  const histories = await Promise.all(
    [first, second, third].map(({ intentId }) =>
      historyOf(env, orderWorkflowId('payment', intentId)),
    ),
  );
  for (const history of histories) expect(history).toContain(merchantId);
  await worker.stop();
  const { output } = await worker.gone;
  expect(output).toContain('the gateway refuses the key of the account');
  const everything = [dump, ...histories, output, ...seen].join('\n');
  expect(FORMS.filter((form) => everything.includes(form))).toEqual([]);
  const { charges } = await world.control('GET', 'charges');
  const paid = (charges as { status: string; metadata: { merchantId: string } }[])
    .filter(({ metadata }) => metadata.merchantId === merchantId)
    .map(({ status }) => status);
  expect(paid).toEqual(['succeeded', 'succeeded', 'succeeded']);
});
