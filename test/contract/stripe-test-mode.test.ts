import { expect } from 'vitest';
import { onStripe } from '../support/stripe.ts';
import { describeGatewayContract } from './gateway.contract.ts';
import { startTestModeHarness } from './gateway-test-mode-harness.ts';

/** With STRIPE_TEST_KEY the gateway contract is tested at Stripe itself, over the internet. No money moves. */
const { STRIPE_TEST_KEY: secretKey = '' } = process.env;
const isSkipped = secretKey === '';

if (isSkipped) {
  process.stderr.write(
    'The contract did not run in Stripe’s test mode: STRIPE_TEST_KEY is not set.\n',
  );
}
describeGatewayContract('Stripe’s test mode', () => startTestModeHarness(secretKey), {
  canFail: false,
  canEnterCards: false,
  isSkipped,
});

onStripe(
  'the harness of Stripe’s test mode takes the account of its key and refuses a live key',
  async ({ world }) => {
    const { gateway, saveCard } = await startTestModeHarness(world.secretKey, world.proxy.url);
    expect(gateway.name).toBe(`stripe:${world.id}`);
    // The double has no SetupIntents without its card page.
    await expect(saveCard?.('4242424242424242')).rejects.toMatchObject({ statusCode: 501 });
    await expect(startTestModeHarness('sk_live_1')).rejects.toThrow(
      'STRIPE_TEST_KEY is not a test key',
    );
  },
);
