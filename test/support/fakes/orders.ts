import { createPaymentActivities } from '../../../activities/orders/payments.ts';
import { createRefundActivities } from '../../../activities/orders/refunds.ts';
import { createSetupMethodActivities } from '../../../activities/orders/setup-methods.ts';
import type { Db } from '../../../db/client.ts';
import { DomainError } from '../../../domain/errors.ts';
import { subjectOf } from '../../../domain/order.ts';
import type { Order, OrderOutcome } from '../../../domain/order.ts';
import type { AwaitedKind, Orders } from '../../../temporal/orders.ts';
import { activityDeps, createFakeGateway } from './gateway.ts';
import type { GatewayFaults } from './gateway.ts';

/**
 * Creates a fake of the port to the workflows of orders, without Temporal. The fake runs the real activities once
 * for each order, with a gateway in memory. A payment method that a test inserts behaves by its `gatewayMethodId`.
 */
export function createFakeOrders(db: Db, now: () => number) {
  const faults = {
    /** Temporal is unavailable: no workflow of an order is started. */
    isDown: false,
    /** An order is executed, and its outcome does not reach the API. */
    losesOutcome: false,
    /** Runs after an order was executed, before its outcome reaches the API. */
    beforeOutcome: null as (() => Promise<void>) | null,
    card: null as GatewayFaults['card'],
    refund: null as GatewayFaults['refund'],
  };
  const calls: { name: string; order: object }[] = [];
  const book = createFakeGateway(faults);
  const deps = activityDeps(db, book.gateway);
  const { chargePayment } = createPaymentActivities(deps);
  const { refundPayment } = createRefundActivities(deps);
  const { saveSetupMethod } = createSetupMethodActivities(deps);

  const activities = {
    payment: async (order: Order<'payment'>) =>
      received(await chargePayment({ ...order, nowAt: now() })),
    refund: async (order: Order<'refund'>) =>
      received(await refundPayment({ ...order, nowAt: now() })),
    setupMethod: (order: Order<'setupMethod'>) => saveSetupMethod({ ...order, nowAt: now() }),
  };
  /** The last run of each subject. Temporal runs one workflow of a subject at a time. */
  const running = new Map<string, Promise<unknown>>();
  const orders: Pick<Orders, 'execute' | 'recheck'> = {
    async execute<Kind extends AwaitedKind>(kind: Kind, order: Order<Kind>) {
      handOver(`execute ${kind}`, order);
      const activity = activities[kind] as (one: Order<Kind>) => Promise<OrderOutcome<Kind>>;
      const subject = subjectOf(order);
      const run = (running.get(subject) ?? Promise.resolve()).then(() => activity(order));
      running.set(
        subject,
        run.catch(() => undefined),
      );
      return run;
    },
    async recheck(kind, order) {
      handOver(`recheck ${kind}`, order);
    },
  };
  return { ...orders, calls, faults, charges: book.charges, refunds: book.refunds };

  function handOver(name: string, order: object): void {
    calls.push({ name, order });
    if (faults.isDown) throw new DomainError('service_unavailable');
  }

  async function received<T>(outcome: T): Promise<T> {
    await faults.beforeOutcome?.();
    if (faults.losesOutcome) throw new DomainError('service_unavailable');
    return outcome;
  }
}
