import { describe, expect } from 'vitest';
import { onDevServer as test } from '../support/environment.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import { startWebhookReceiver } from '../../tools/scripts/client/webhook-receiver.ts';
import type { WebhookReceiver } from '../../tools/scripts/client/webhook-receiver.ts';
import { deleteWebhookConfig } from '../../db/repositories/webhooks/configs.ts';

const SIGNER = 'whsec_bm90aGluZyBpcyBsb3N0IG9uIHRoZSB3YXkgdG8geW91';
const CREATED_AT = Date.parse('2027-01-10T00:00:00Z');

let receiver: WebhookReceiver;
let configId: string;

test.beforeEach(async ({ env }) => {
  receiver = await startWebhookReceiver({ secrets: [SIGNER] });
  configId = await env.subscribe(receiver.url, SIGNER);
});

test.afterEach(async ({ env }) => {
  await env.startWorkers();
  await deleteWebhookConfig(env.db, {
    merchantId: env.merchantId,
    configId,
    at: Date.now(),
  });
  await receiver.close();
});

const received = () =>
  receiver.received.map(
    ({ event, answered }) => `${event.sequence} ${event.eventType} ${answered}`,
  );

/** Creates and pays a subscription on a test clock, which causes five events. */
async function paidSubscription(env: TestEnvironment) {
  const clock = await env.createClock(CREATED_AT);
  const terms = { cycleCount: 3 };
  const ref = await env.create({ createdAt: CREATED_AT, testClockId: clock, terms });
  await payCheckout(env, ref);
  return { ref, clock };
}

describe('a webhook endpoint', () => {
  test('delays no charge while it fails, and afterwards gets every event in order [D-54]', async ({
    env,
  }) => {
    receiver.answerNext({ status: 500 });
    const { ref, clock } = await paidSubscription(env);
    await env.advance(clock, '2027-02-10T00:00:00Z');
    expect(await env.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
    await receiver.waitFor(9);
    expect(received()).toEqual([
      '1 intent.created 500',
      '1 intent.created 200',
      '2 subscription.created 200',
      '3 intent.success 200',
      '4 subscription.cycle_charged 200',
      '5 subscription.active 200',
      '6 intent.created 200',
      '7 intent.success 200',
      '8 subscription.cycle_charged 200',
    ]);
  });
});

describe('stopped workers', () => {
  test('deliver the events of the downtime when they start again', async ({ env }) => {
    // Given a subscription created while no worker runs
    await env.stopWorkers();
    const ref = await env.create({ createdAt: Date.now() });
    expect((await env.events(ref)).map((event) => event['eventType'])).toEqual([
      'intent.created',
      'subscription.created',
    ]);
    expect(received()).toEqual([]);
    // When workers start again
    await env.startWorkers();
    await receiver.waitFor(2);
    expect(received()).toEqual(['1 intent.created 200', '2 subscription.created 200']);
  });
});
