import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { changeGateway } from '../../db/repositories/merchants/gateways.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import { accountBinding } from '../../gateways/merchant-gateways.ts';
import { findings } from '../support/findings.ts';
import { importsIn, LINE } from '../support/imports.ts';
import { onStripe, savedCard } from '../support/stripe.ts';
import type { StripeWorld } from '../support/stripe.ts';
import { connectDevServer } from '../support/temporal-servers.ts';
import { createEnvironment } from '../support/test-environment.ts';

/** The import of subscriptions whose cards are at Stripe. */

const test = onStripe
  .extend('env', { scope: 'file' }, async ({ world }, { onCleanup }) => {
    const server = await connectDevServer();
    const env = await createEnvironment(server, { stripeUrl: world.proxy.url });
    onCleanup(async () => {
      await env.close();
      await server.teardown();
    });
    const name = `stripe:${world.id}`;
    const sealed = env.sealing.seal(world.secretKey, accountBinding(env.merchantId, name));
    await changeGateway(env.db, {
      merchantId: env.merchantId,
      name,
      mode: 'test',
      key: { sealed, ending: world.secretKey.slice(-4) },
      sealedWebhookSecret: null,
      makeCurrent: true,
      nowAt: Date.now(),
    });
    return env;
  })
  .extend('imports', { scope: 'file' }, async ({ env }, { onCleanup }) => {
    const imports = importsIn(env);
    onCleanup(() => imports.close());
    return imports;
  });

/** The charges at Stripe of a subscription. */
async function chargesOf(world: StripeWorld, subscriptionId: string) {
  const { charges } = await world.control('GET', 'charges');
  return (charges as Charge[])
    .filter(({ metadata }) => metadata.subscriptionId === subscriptionId)
    .map(({ status, amountMinor }) => `${status} ${amountMinor}`);
}

interface Charge {
  status: string;
  amountMinor: number;
  metadata: { subscriptionId?: string };
}

const methodOf = ({ customer, payment_method }: Awaited<ReturnType<typeof savedCard>>) => ({
  gatewayCustomerId: customer,
  gatewayMethodId: payment_method,
});

describe('subscriptions with cards at Stripe', () => {
  test('are checked, imported once, and charged once on their date [D-§4]', async ({
    world,
    env,
    imports,
  }) => {
    const gateway = await env.gateways.forNewMethods(env.merchantId);
    const [ada, bob] = [await savedCard(world.stripe), await savedCard(world.stripe)];
    // The import's clock stands 1 ms before the payment date, which may be past in real time on a slow machine.
    const nextPaymentDate = Date.now() + 2_000;
    const now = () => nextPaymentDate - 1;
    const line = { ...LINE, nextPaymentDate, cyclesCharged: 11 };
    const lines = [
      { ...line, importId: 'ada', ...methodOf(ada) },
      { ...line, importId: 'ada-too', ...methodOf(ada), amount: 2_999 },
      { ...line, importId: 'of-another', ...methodOf(ada), gatewayCustomerId: bob.customer },
      { ...line, importId: 'no-customer', gatewayMethodId: bob.payment_method },
      { ...line, importId: 'fils', ...methodOf(bob), currency: 'KWD', amount: 1_001 },
    ];
    const before = await imports.countRows();
    const checked = await imports.run(lines, { gateway, now });
    expect(await imports.countRows()).toEqual(before);
    const { name } = gateway;
    expect(checked.report.map(({ result, problem }) => problem ?? result)).toEqual([
      'ok',
      'ok',
      `gatewayMethodId: ${name} has no card ${bob.customer}/${ada.payment_method}`,
      `gatewayMethodId: ${name} has no card ${bob.payment_method}`,
      'amount: must be a multiple of 10 in KWD, because Stripe charges no other amount',
    ]);

    const { report, totals } = await imports.run(lines, { commit: true, gateway, now });
    expect(report.map(({ result }) => result)).toEqual([
      'imported',
      'imported',
      'problem',
      'problem',
      'problem',
    ]);
    expect(
      totals.map(({ currency, amountMinor, charges }) => [currency, amountMinor, charges]),
    ).toEqual([['USD', 4_998n, 2]]);
    expect(JSON.stringify(report)).not.toMatch(/expiry|2034/i);
    const ids = report.flatMap(({ subscriptionId }) => subscriptionId ?? []);
    for (const subscriptionId of ids) {
      const ref = { merchantId: env.merchantId, subscriptionId };
      await expect.poll(() => env.state(ref)).toMatchObject({ status: 'ENDED' });
    }
    expect(await Promise.all(ids.map((id) => chargesOf(world, id)))).toEqual([
      ['succeeded 1999'],
      ['succeeded 2999'],
    ]);
    const customers = await env.db
      .selectDistinct({ customerId: subscriptions.customerId })
      .from(subscriptions)
      .where(eq(subscriptions.merchantId, env.merchantId));
    expect(customers).toHaveLength(1);

    const again = await imports.run(lines, { commit: true, gateway, now });
    expect(again.report.map(({ result }) => result)).toEqual([
      'already_imported',
      'already_imported',
      'problem',
      'problem',
      'problem',
    ]);
    expect(await Promise.all(ids.map((id) => chargesOf(world, id)))).toEqual([
      ['succeeded 1999'],
      ['succeeded 2999'],
    ]);
    expect((await findings(env, null)).wrong).toEqual([]);
  });

  test('are reported as a problem when Stripe answers 500, and are imported when the import is repeated', async ({
    world,
    env,
    imports,
  }) => {
    const gateway = await env.gateways.forNewMethods(env.merchantId);
    const saved = await savedCard(world.stripe);
    const nextPaymentDate = Date.parse('2100-01-31T10:00:00Z');
    const line = { ...LINE, importId: 'unanswered', nextPaymentDate, ...methodOf(saved) };
    await world.faults('POST', 'faults', {
      method: 'GET',
      path: '/v1/payment_methods/*',
      fault: 'answer',
      status: 500,
      body: { error: { type: 'api_error', message: 'ordered by the test' } },
      count: 5,
    });
    const { report } = await imports.run([line], { commit: true, gateway });
    expect(report).toEqual([
      {
        line: 1,
        importId: 'unanswered',
        result: 'problem',
        problem: 'the gateway did not answer: Stripe answered 500 api_error',
      },
    ]);
    const again = await imports.run([line], { commit: true, gateway });
    expect(again.report.map(({ result }) => result)).toEqual(['imported']);
  });
});
