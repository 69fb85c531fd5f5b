import { LINKS } from '../links.ts';
import { createPaymentActivities } from '../../../activities/orders/payments.ts';
import { oneGateway } from '../one-gateway.ts';
import { createRefundActivities } from '../../../activities/orders/refunds.ts';
import { createSetupMethodActivities } from '../../../activities/orders/setup-methods.ts';
import type { Db } from '../../../db/client.ts';
import { isDeclineCode } from '../../../domain/declines.ts';
import type { DeclineCode } from '../../../domain/declines.ts';
import { DomainError } from '../../../domain/errors.ts';
import type { Order, OrderOutcome } from '../../../domain/order.ts';
import type {
  ChargeOutcome,
  PaymentGateway,
  RefundOutcome,
  SaveMethodRequest,
  SavedCard,
} from '../../../gateways/port.ts';
import type { AwaitedKind, Orders } from '../../../temporal/orders.ts';

/**
 * Creates a fake of the port to the workflows of orders, without Temporal. The fake runs the real activities once
 * for each order, with a gateway in memory. The token of a card is also its `gatewayMethodId`, and sets the
 * card's behaviour. If the token contains a decline code, the card is declined with that code when it is
 * charged or verified. If the token contains `unknown`, a charge has no known outcome. A payment method that a
 * test inserts behaves the same by its `gatewayMethodId`.
 */
export function createFakeOrders(db: Db, now: () => number) {
  const faults = {
    /** Temporal is unavailable: no workflow of an order is started. */
    isDown: false,
    /** An order is executed, and its outcome does not reach the API. */
    losesOutcome: false,
    /** Runs after an order was executed, before its outcome reaches the API. */
    beforeOutcome: null as (() => Promise<void>) | null,
    /** Replaces the behaviour of every charge: a decline code, `unknown`, or `paid`. */
    card: null as string | null,
    /** The outcome of every refund: `unknown` or `refused`. With null, every refund succeeds. */
    refund: null as 'unknown' | 'refused' | null,
  };
  const calls: { name: string; order: object }[] = [];
  const book = createBook(faults);
  const deps = {
    db,
    gateways: oneGateway(book.gateway),
    // A retry would not change an answer of the gateway in memory.
    sendBudget: { newSendsForMs: 0, pauseMs: 1 },
    links: LINKS,
    orders: { ensureRunning: async () => true },
    wakeStream: async () => undefined,
  };
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
  const orders: Pick<Orders, 'execute' | 'recheck'> = {
    async execute<Kind extends AwaitedKind>(kind: Kind, order: Order<Kind>) {
      handOver(`execute ${kind}`, order);
      return (activities[kind] as (one: Order<Kind>) => Promise<OrderOutcome<Kind>>)(order);
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

interface Faults {
  card: string | null;
  refund: 'unknown' | 'refused' | null;
}

/**
 * Creates a gateway in memory. A repeated idempotency key gets the stored result and has no second effect.
 */
function createBook(faults: Faults) {
  const decided = new Map<string, ChargeOutcome>();
  const returned = new Map<string, RefundOutcome>();
  const charges: { key: string; amountMinor: number; kind: string }[] = [];
  const refunds: { key: string; amountMinor: number }[] = [];

  const gateway: PaymentGateway = {
    name: 'fake',
    capabilities: { payerPresent: false, mode: 'test' },
    tokeniserUrl: '',
    testCards: [],
    company: 'the fake',
    openCardEntry: null,
    amountProblem: () => null,
    prepare: null,
    withdraw: null,
    readEvents: null,
    lookupDispute: null,
    lookupMethod: async () => ({ kind: 'removed' }),
    lookupRefund: async () => ({ kind: 'absent' }),
    async saveMethod({ token, verify }: SaveMethodRequest) {
      const code = verify ? declineOf(token) : null;
      if (code) return { kind: 'refused', code, reason: 'asked for' };
      return { kind: 'saved', card: cardOf(token), enteredAt: Date.now() };
    },
    async charge({ key, gatewayMethodId, amountMinor }) {
      const known = decided.get(key);
      if (known) return known;
      const says = faults.card ?? gatewayMethodId;
      if (says.includes('unknown')) return { kind: 'unknown', reason: 'asked for' };
      const code = declineOf(says);
      const outcome: ChargeOutcome = code
        ? { kind: 'declined', code, gatewayChargeId: null, gatewayCode: null, retry: 'unknown' }
        : { kind: 'succeeded', gatewayChargeId: `ch_${key}` };
      decided.set(key, outcome);
      charges.push({ key, amountMinor, kind: outcome.kind });
      return outcome;
    },
    async lookup({ key }) {
      const known = decided.get(key);
      if (known && known.kind !== 'not_sent') return known;
      // With `paid` the look-up finds no charge, so a charge of unknown outcome is sent again and succeeds.
      if (faults.card === 'paid') return { kind: 'absent' };
      return { kind: 'unknown', reason: 'asked for' };
    },
    async refund({ key, amountMinor }) {
      const known = returned.get(key);
      if (known) return known;
      if (faults.refund === 'unknown') return { kind: 'unknown', reason: 'asked for' };
      if (faults.refund === 'refused') return { kind: 'refused', reason: 'charge_not_found' };
      const outcome: RefundOutcome = { kind: 'refunded', gatewayRefundId: `re_${key}` };
      returned.set(key, outcome);
      refunds.push({ key, amountMinor });
      return outcome;
    },
  };
  return { gateway, charges, refunds };
}

function declineOf(text: string): DeclineCode | null {
  const found = /[a-z]+(?:_[a-z]+)+/g;
  return text.match(found)?.find(isDeclineCode) ?? null;
}

function cardOf(token: string): SavedCard {
  return {
    gatewayMethodId: token,
    brand: 'visa',
    country: 'US',
    lastFourDigit: '4242',
    expiryMonth: 12,
    expiryYear: 2034,
  };
}
