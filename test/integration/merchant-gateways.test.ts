import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import { createDb } from '../../db/client.ts';
import { changeGateway, gatewayRows } from '../../db/repositories/merchants/gateways.ts';
import { createMerchantWithCredential } from '../../db/repositories/merchants/merchants.ts';
import { accountBinding, createMerchantGateways } from '../../gateways/merchant-gateways.ts';
import type { ChargeRequest } from '../../gateways/port.ts';
import { createSandboxClient } from '../../gateways/sandbox/client.ts';
import { createSealing } from '../../runtime/sealing.ts';
import { createTestDatabase } from '../support/database.ts';
import { onStripe, savedCard } from '../support/stripe.ts';
import type { StripeWorld } from '../support/stripe.ts';

type Account = Awaited<ReturnType<StripeWorld['account']>>;

/** A database for this file, with functions that insert merchants and their accounts, and create registries. */
const test = onStripe.extend('merchants', { scope: 'file' }, async ({ world }, { onCleanup }) => {
  const database = await createTestDatabase();
  const { db, close } = createDb({
    url: database.url,
    poolSize: 4,
    applicationName: 'test-merchant-gateways',
  });
  const sealing = createSealing([randomBytes(32)]);
  const sandbox = createSandboxClient({ url: 'http://127.0.0.1:1', publicUrl: '', apiKey: '' });
  onCleanup(async () => {
    await sandbox.close();
    await close();
    await database.drop();
  });
  return {
    sandbox,
    merchant: async (mode: 'test' | 'live' = 'test') => {
      const made = await createMerchantWithCredential(db, { name: 'Shop', mode, pepper: 'pepper' });
      return made.merchantId;
    },
    /** Stores an account with its key, as the operator's command does. */
    enter: (
      merchantId: string,
      { id, secretKey }: Pick<Account, 'id' | 'secretKey'>,
      sealedWebhookSecret: Buffer | null = null,
    ) => {
      const name = `stripe:${id}`;
      const sealed = sealing.seal(secretKey, accountBinding(merchantId, name));
      return changeGateway(db, {
        merchantId,
        name,
        mode: 'test',
        key: { sealed, ending: secretKey.slice(-4) },
        sealedWebhookSecret,
        makeCurrent: false,
        nowAt: Date.now(),
      });
    },
    registry: () => {
      const refused: string[] = [];
      const observed: string[] = [];
      const registry = createMerchantGateways({
        sandbox,
        ...gatewayRows(db),
        sealing,
        timeoutMs: 20_000,
        doubleUrls: { stripe: world.proxy.url },
        onKeyRefused: (_merchantId, gateway) => void refused.push(gateway),
        observer: {
          requested: (gateway, { operation, outcome }) =>
            void observed.push(`${gateway} ${operation} ${outcome}`),
          rateLimited: (gateway) => void observed.push(`${gateway} 429`),
        },
      });
      return { ...registry, refused, observed };
    },
  };
});

/** Saves a card at the account, and returns a charge request of 19.99 USD for this card. */
async function chargeOf({ stripe }: Account, intentId: string): Promise<ChargeRequest> {
  const { customer, payment_method } = await savedCard(stripe);
  return chargeOfCard(`${customer}/${payment_method}`, intentId);
}

const chargeOfCard = (gatewayMethodId: string, intentId: string): ChargeRequest => ({
  key: `charge:${intentId}:1`,
  gatewayChargeId: null,
  gatewayMethodId,
  amountMinor: 1_999,
  currency: 'USD',
  reference: { merchantId: 'mer_1', intentId, subscriptionId: null, paymentMethodId: 'pmt_1' },
});

const chargesIn = async (world: StripeWorld, prefix: string) => {
  const { charges } = await world.control('GET', 'charges');
  return (charges as { status: string; confirmCount: number; metadata: { intentId?: string } }[])
    .filter(({ metadata }) => metadata.intentId?.startsWith(prefix) === true)
    .map(({ status, confirmCount }) => `${status} x${confirmCount}`);
};

test('a test merchant without an account has the sandbox, and a live merchant has no gateway [D-20]', async ({
  merchants,
}) => {
  const registry = merchants.registry();
  const [tester, live] = [await merchants.merchant(), await merchants.merchant('live')];
  expect((await registry.forNewMethods(tester)).name).toBe('sandbox');
  expect((await registry.of(tester, 'sandbox')).name).toBe('sandbox');
  await expect(registry.forNewMethods(live)).rejects.toMatchObject({
    code: 'operation_not_allowed',
    message:
      'This live merchant has no payment gateway. The operator of the service has to add a Stripe account.',
  });
  await expect(registry.of(live, 'sandbox')).rejects.toThrow('this process has no gateway sandbox');
  await expect(registry.of(tester, 'stripe:acct_other')).rejects.toThrow(
    'this process has no gateway stripe:acct_other',
  );
});

test('an account is charged although no key can decrypt its webhook secret [D-20]', async ({
  world,
  merchants,
}) => {
  const owner = await merchants.merchant();
  const account = await world.account();
  const lost = createSealing([randomBytes(32)]).seal('whsec_lost', 'lost');
  await merchants.enter(owner, account, lost);
  const gateway = await merchants.registry().of(owner, `stripe:${account.id}`);
  const charge = await chargeOf(account, 'in_lost');
  const prepared = await gateway.prepare?.(charge);
  expect(await gateway.charge({ ...charge, ...prepared })).toMatchObject({ kind: 'succeeded' });
});

test('an account of one merchant is refused for another merchant [D-21]', async ({
  world,
  merchants,
}) => {
  const [owner, other] = [await merchants.merchant(), await merchants.merchant()];
  const account = await world.account();
  expect(await merchants.enter(owner, account)).toBe('added');
  expect(await merchants.enter(owner, account)).toBe('changed');
  expect(await merchants.enter(other, account)).toBe('taken');
  const registry = merchants.registry();
  const name = `stripe:${account.id}`;
  expect((await registry.receiving(name)).map(({ merchantId }) => merchantId)).toEqual([owner]);
  expect(await registry.receiving('stripe:acct_none')).toEqual([]);
  expect((await registry.forNewMethods(other)).name).toBe('sandbox');
  await expect(registry.of(other, `stripe:${account.id}`)).rejects.toThrow('has no gateway');
});

test('a charge uses the account that saved the card, also after another account became current [D-20]', async ({
  world,
  merchants,
}) => {
  const merchantId = await merchants.merchant();
  const [first, second] = [await world.account(), await world.account()];
  expect(await merchants.enter(merchantId, first)).toBe('added');
  expect((await merchants.registry().forNewMethods(merchantId)).name).toBe(`stripe:${first.id}`);
  const charge = await chargeOf(first, 'in_two_accounts');

  expect(await merchants.enter(merchantId, second)).toBe('added');
  const registry = merchants.registry();
  expect((await registry.forNewMethods(merchantId)).name).toBe(`stripe:${second.id}`);
  const gateway = await registry.of(merchantId, `stripe:${first.id}`);
  const prepared = await gateway.prepare?.(charge);
  if (prepared?.kind !== 'prepared') throw new Error(`not prepared: ${prepared?.kind}`);
  const { gatewayChargeId } = prepared;
  expect(await gateway.charge({ ...charge, gatewayChargeId })).toMatchObject({ kind: 'succeeded' });
  const other = await registry.of(merchantId, `stripe:${second.id}`);
  await expect(other.lookup({ ...charge, gatewayChargeId })).rejects.toThrow(
    'the gateway refused the request: 400 resource_missing',
  );
  expect(await chargesIn(world, 'in_two_accounts')).toEqual(['succeeded x1']);
});

test('a running process neither loses nor repeats a charge when the key is replaced and the old key is refused [D-20]', async ({
  world,
  merchants,
}) => {
  const merchantId = await merchants.merchant();
  const account = await world.account();
  await merchants.enter(merchantId, account);
  const card = (await chargeOf(account, 'in_rotation')).gatewayMethodId;
  const registry = merchants.registry();
  const pay = async (number: number) => {
    const charge = chargeOfCard(card, `in_rotation_${number}`);
    const gateway = await registry.of(merchantId, `stripe:${account.id}`);
    const prepared = await gateway.prepare?.(charge);
    if (prepared?.kind !== 'prepared') return prepared?.kind;
    const { gatewayChargeId } = prepared;
    return (await gateway.charge({ ...charge, gatewayChargeId })).kind;
  };
  expect(await pay(0)).toBe('succeeded');

  const secretKey = `${account.secretKey}_rotated`;
  const outcomes: unknown[] = [];
  let isRotated = false;
  let number = 0;
  const paying = async () => {
    // Each of the two payers makes two more charges after the rotation.
    for (let after = 0; after < 2; after += isRotated ? 1 : 0) {
      number += 1;
      outcomes.push(await pay(number));
    }
  };
  const payers = [paying(), paying()];
  await expect.poll(() => outcomes.length, { timeout: 30_000 }).toBeGreaterThan(2);
  expect(await merchants.enter(merchantId, { id: account.id, secretKey })).toBe('changed');
  await world.control('POST', 'accounts/key', { accountId: account.id, secretKey });
  isRotated = true;
  await Promise.all(payers);

  expect(outcomes).toEqual(outcomes.map(() => 'succeeded'));
  expect(await chargesIn(world, 'in_rotation_')).toEqual(
    Array.from({ length: number + 1 }, () => 'succeeded x1'),
  );
  expect(registry.refused).toEqual([]);
});

test('a charge has no effect while Stripe refuses the secret key, and succeeds after the operator enters the new key [D-20]', async ({
  world,
  merchants,
}) => {
  const merchantId = await merchants.merchant();
  const account = await world.account();
  await merchants.enter(merchantId, account);
  const charge = await chargeOf(account, 'in_refused');
  const secretKey = `${account.secretKey}_rolled`;
  await world.control('POST', 'accounts/key', { accountId: account.id, secretKey });

  const registry = merchants.registry();
  const gateway = await registry.of(merchantId, `stripe:${account.id}`);
  expect(await gateway.prepare?.(charge)).toEqual({
    kind: 'not_sent',
    reason: 'Stripe answered 401 invalid_request_error',
    isAccountRefused: true,
  });
  expect(registry.refused).toEqual([`stripe:${account.id}`]);

  await merchants.enter(merchantId, { id: account.id, secretKey });
  const prepared = await gateway.prepare?.(charge);
  if (prepared?.kind !== 'prepared') throw new Error(`not prepared: ${prepared?.kind}`);
  const { gatewayChargeId } = prepared;
  expect((await gateway.charge({ ...charge, gatewayChargeId })).kind).toBe('succeeded');
  expect(await chargesIn(world, 'in_refused')).toEqual(['succeeded x1']);
});

test('an observer gets the gateway, the operation and the outcome of each call, and each 429 [D-20]', async ({
  world,
  merchants,
}) => {
  const merchantId = await merchants.merchant();
  const account = await world.account();
  await merchants.enter(merchantId, account);
  const charge = await chargeOf(account, 'in_observed');
  const registry = merchants.registry();
  const name = `stripe:${account.id}`;
  const gateway = await registry.of(merchantId, name);
  const body = { error: { type: 'invalid_request_error', code: 'rate_limit', message: 'ordered' } };
  await world.faults('POST', 'faults', {
    method: 'POST',
    path: '/v1/payment_intents',
    count: 1,
    fault: 'answer',
    status: 429,
    body,
  });
  expect((await gateway.prepare?.(charge))?.kind).toBe('not_sent');
  expect((await gateway.prepare?.(charge))?.kind).toBe('prepared');
  // A charge that was not prepared has no id at Stripe.
  await expect(gateway.charge(charge)).rejects.toThrow('was not prepared');
  expect(registry.observed).toEqual([
    `${name} newestCharge absent`,
    `${name} 429`,
    `${name} prepare not_sent`,
    `${name} prepare prepared`,
    `${name} charge error`,
  ]);
});
