import { withoutQueryData } from './failures.ts';
import { createGatewayEventActivities } from './gateway-events/handle-events.ts';
import { createLateChargeActivities } from './orders/late-charges.ts';
import { createMaintenanceActivities } from './repair/sweep.ts';
import { createPaymentActivities } from './orders/payments.ts';
import { createRefundActivities } from './orders/refunds.ts';
import { createSetupMethodActivities } from './orders/setup-methods.ts';
import { createChargingActivities, createTransitionActivities } from './subscription.ts';
import type { ActivityDeps } from './deps.ts';

export type Activities = ReturnType<typeof createActivities>;

export function createActivities(deps: ActivityDeps) {
  return withoutQueryData({
    ...createChargingActivities(deps),
    ...createPaymentActivities(deps),
    ...createRefundActivities(deps),
    ...createLateChargeActivities(deps),
    ...createSetupMethodActivities(deps),
    ...createGatewayEventActivities(deps),
    ...createTransitionActivities(deps),
    ...deps.webhooks,
    ...createMaintenanceActivities(deps),
  });
}
