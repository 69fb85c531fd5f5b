import { createStripeGateway } from '../../gateways/stripe/adapter.ts';
import type { FaultOrder, GatewayHarness } from './gateway-harness.ts';
import { cardEntry, startStripe, submitCard, submitForm } from '../support/stripe.ts';

/** The requests of an operation, as the fault proxy matches them. */
const REQUESTS = {
  charge: { method: 'POST', path: '/v1/payment_intents/*/confirm' },
  lookup: { method: 'GET', path: '/v1/payment_intents/*' },
  methods: { method: 'GET', path: '/v1/checkout/sessions/*' },
  refund: { method: 'POST', path: '/v1/refunds' },
} as const;

const FAILED = { error: { type: 'api_error', message: 'ordered by the test' } };

interface DoubleCharge {
  status: string;
  amountMinor: number;
  confirmCount: number;
  metadata: { key: string; subscriptionId?: string };
}

/**
 * Starts Stripe's adapter with the fault proxy, the Stripe double and stripe-mock behind it, as a harness of the
 * contract tests.
 */
export async function startStripeGatewayHarness(): Promise<GatewayHarness> {
  const world = await startStripe();
  const options = (timeoutMs: number) => ({
    secretKey: world.secretKey,
    accountId: world.id,
    timeoutMs,
    url: world.proxy.url,
  });
  const gateway = createStripeGateway(options(30_000));
  const impatient = createStripeGateway(options(750));
  return {
    gateway,
    // The connection is open, because the charge was prepared. The request leaves before the time limit.
    chargeAndGiveUp: (request) => impatient.charge(request),
    saveCard: null,
    rereadableTokens: 'Stripe’s session may be read again, and gives the same card',
    payingCard: '4242424242424242',
    decliningCards: [
      { number: '4000000000000341', code: 'card_declined' },
      { number: '4000002760003184', code: 'authentication_required' },
    ],
    issueToken: async (number, session) => {
      const entry = await gateway.openCardEntry?.(cardEntry({ session }));
      if (entry?.kind !== 'redirect') throw new Error(`no page: ${entry?.kind}`);
      let { location } = await submitCard(entry.url, number);
      if (location?.includes('/challenge/') === true) {
        ({ location } = await submitForm(location, { outcome: 'complete' }));
      }
      const token = new URL(location ?? '').searchParams.get('payment_token');
      if (token === null) throw new Error(`no token for ${number}`);
      return token;
    },
    faults: {
      once: async (order) => {
        await world.faults('DELETE', 'faults');
        await world.faults('POST', 'faults', { ...faultOf(order), count: 1 });
      },
      decline: async (subscriptionId, code, count, advice) => {
        const metadata = { subscriptionId };
        const adviceCode = advice ? 'do_not_try_again' : null;
        const decline = { kind: 'decline', code: 'card_declined', declineCode: code, adviceCode };
        await world.control('POST', 'outcomes', { metadata, count, ...decline });
      },
    },
    refunds: {
      leavePending: async (gatewayChargeId) => {
        const intent = await world.stripe.paymentIntents.retrieve(gatewayChargeId);
        await world.control('POST', 'refunds/pending', { chargeId: intent.latest_charge });
      },
      decide: async ({ gatewayRefundId: refundId }, status) => {
        const failure = status === 'failed' ? { failure: 'expired_or_canceled_card' } : {};
        await world.control('POST', 'refunds/settle', { refundId, ...failure });
      },
    },
    book: async (subscriptionId) => {
      const { charges } = await world.control('GET', 'charges');
      return (charges as DoubleCharge[])
        .filter(({ metadata }) => metadata.subscriptionId === subscriptionId)
        .map(({ status, amountMinor, confirmCount, metadata }) => ({
          key: metadata.key,
          outcome: status,
          amountMinor,
          sentCount: confirmCount,
        }));
    },
    close: () => world.close(),
  };
}

function faultOf({ operation, fault, effect = 'done', delayMs }: FaultOrder) {
  const request = REQUESTS[operation];
  switch (fault) {
    case 'delay':
      return { ...request, fault, delayMs };
    case 'error_500':
      return { ...request, fault: 'answer', status: 500, body: FAILED, effect };
    case 'lose_answer':
      return { ...request, fault: effect === 'done' ? 'lose_answer' : 'lose_request' };
  }
}
