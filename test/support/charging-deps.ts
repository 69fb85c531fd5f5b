import type { PaymentGateway } from '../../gateways/port.ts';
import { LINKS } from './links.ts';
import { oneGateway } from './one-gateway.ts';
import { PLACES } from './places.ts';
import type { TestEnvironment } from './test-environment.ts';

/** What the charging activities need, with the environment's gateway changed by `changes`. */
export const chargingDeps = (env: TestEnvironment, changes: Partial<PaymentGateway>) => ({
  links: LINKS,
  places: PLACES,
  db: env.db,
  orders: env.orders,
  wakeStream: env.webhooks.wakeStream,
  endPayerPriority: () => undefined,
  gateways: oneGateway({ ...env.gateway, ...changes }),
});
