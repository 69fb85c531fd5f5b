import type { CardOutcome } from '../domain/card-outcome.ts';
import { assertNever } from '../domain/errors.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { PaymentOutcome } from '../domain/payment-intent.ts';
import type { SetupOutcome } from '../domain/setup-method.ts';
import type { Orders } from './orders.ts';
import type { CommandAnswer, SubscriptionWorkflows } from './subscriptions/workflows.ts';

/** The workflows that take a card. */
export interface CardTakers {
  readonly workflows: Pick<SubscriptionWorkflows, 'execute'>;
  readonly orders: Pick<Orders, 'execute'>;
}

/** The page on which a payer entered a card. `subjectId`: its subscription, payment intent or setup session. */
export interface CardPage {
  readonly merchantId: string;
  readonly sessionId: string;
  readonly purpose: 'subscription' | 'update_method' | 'payment' | 'setup_method';
  readonly subjectId: string;
}

/** Submits a card once for each token. Throws `service_unavailable` if it is unknown whether the card was submitted. */
export async function submitCard(
  { workflows, orders }: CardTakers,
  { merchantId, sessionId: checkoutSessionId, purpose, subjectId }: CardPage,
  paymentToken: string,
): Promise<CardOutcome> {
  const token = { paymentToken, checkoutSessionId };
  switch (purpose) {
    case 'payment':
      return outcomeOf(await orders.execute('payment', { merchantId, intentId: subjectId, token }));
    case 'setup_method':
      return outcomeOf(
        await orders.execute('setupMethod', { merchantId, setupMethodId: subjectId, token }),
      );
    case 'subscription':
    case 'update_method': {
      const kind = purpose === 'subscription' ? 'completeCheckout' : 'replacePaymentMethod';
      const ref = { merchantId, subscriptionId: subjectId };
      return outcomeOf(await workflows.execute(ref, { kind, commandId: paymentToken, ...token }));
    }
    default:
      return assertNever(purpose);
  }
}

function outcomeOf(answer: PaymentOutcome | SetupOutcome | CommandAnswer): CardOutcome {
  switch (answer.kind) {
    case 'succeeded':
    case 'saved':
      return { kind: 'decided' };
    case 'result': {
      const { result } = answer;
      return result.kind === 'checkout' && result.errorCode !== null
        ? { kind: 'declined', errorCode: result.errorCode }
        : { kind: 'decided' };
    }
    case 'declined':
      return answer;
    case 'pending':
      return { kind: 'pending' };
    case 'refused':
      return outcomeOfRefusal(answer.code);
    default:
      return assertNever(answer);
  }
}

/** After every refusal but one, the status of the payment, session or subscription says why. */
function outcomeOfRefusal(code: ErrorCode): CardOutcome {
  return { kind: code === 'payment_outcome_pending' ? 'waiting' : 'decided' };
}
