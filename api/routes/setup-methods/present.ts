import type { SetupMethod } from '../../../db/repositories/setup-methods.ts';
import { setupMethodStatusAt } from '../../../domain/setup-method.ts';

/** A field without a value is omitted. Rules: D-§7, D-10a. */
export function presentSetupMethod(session: SetupMethod, nowAt: number) {
  const { storeFrontId, metadata, paymentMethodId } = session;
  return {
    setupMethodId: session.id,
    customerId: session.customerId,
    currency: session.currency,
    paymentMethods: session.paymentMethods,
    ...(storeFrontId === null ? {} : { storeFrontId }),
    callbackUrl: session.callbackUrl,
    ...(metadata === null ? {} : { metadata }),
    status: setupMethodStatusAt(session, nowAt),
    ...(paymentMethodId === null ? {} : { pmId: paymentMethodId }),
  };
}
