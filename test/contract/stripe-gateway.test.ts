import { describeGatewayContract } from './gateway.contract.ts';
import { startStripeGatewayHarness } from './gateway-stripe-harness.ts';

describeGatewayContract('Stripe', startStripeGatewayHarness, { canFail: true });
