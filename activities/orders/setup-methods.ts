import {
  completeSetupMethod,
  findSetupMethod,
  setupIsOver,
} from '../../db/repositories/setup-methods/sessions.ts';
import type { OrderStep } from '../../domain/order.ts';
import { setupMethodStatusAt } from '../../domain/setup-method.ts';
import type { SetupOutcome } from '../../domain/setup-method.ts';
import { failpoint } from '../../runtime/failpoints.ts';
import type { OrderDeps } from '../deps.ts';
import { redeemToken } from '../charging/redeem-token.ts';

export function createSetupMethodActivities(deps: OrderDeps) {
  return {
    /**
     * Redeems the token, lets the gateway verify the card, and completes the session. A declined card leaves it open.
     * A repeat returns the same method. Throws a retryable error.
     */
    async saveSetupMethod(step: OrderStep<'setupMethod'>): Promise<SetupOutcome> {
      const { merchantId, setupMethodId, token, nowAt } = step;
      const session = await findSetupMethod(deps.db, merchantId, setupMethodId);
      if (!session) {
        const message = 'There is no such setup session.';
        return { kind: 'refused', code: 'resource_not_found', message };
      }
      const status = setupMethodStatusAt(session, nowAt);
      // A completed session may be this order's own: `completeSetupMethod` compares the cards.
      if (status !== 'CREATED' && status !== 'SUCCESS') return setupIsOver(session);
      const { customerId } = session;
      const card = { ...token, merchantId, customerId, verify: true, nowAt };
      const redeemed = await redeemToken(deps, card);
      if (redeemed.kind === 'refused') {
        return status === 'SUCCESS'
          ? setupIsOver(session)
          : { kind: 'declined', errorCode: redeemed.errorCode };
      }
      const { paymentMethodId } = redeemed;
      const ref = { merchantId, setupMethodId };
      failpoint('before_settling_commits');
      const outcome = await completeSetupMethod(deps.db, ref, paymentMethodId, nowAt);
      failpoint('after_settling');
      if (outcome.kind === 'saved') {
        await deps.wakeStream({ merchantId, streamId: setupMethodId });
      }
      return outcome;
    },
  };
}
