import { PLACES } from '../places.ts';
import { LINKS } from '../links.ts';
import type { Db } from '../../../db/client.ts';
import { DECLINES } from '../../../domain/declines.ts';
import type { DeclineCode } from '../../../domain/declines.ts';
import { oneGateway } from '../one-gateway.ts';
import type { ChargeOutcome, PaymentGateway, RefundOutcome } from '../../../gateways/port.ts';

export interface GatewayFaults {
  /** Replaces the text of every charged card: a decline code, `unknown`, `paid`, or `paid late`. */
  card: string | null;
  /** The outcome of every refund: `unknown` or `refused`. With null, every refund succeeds. */
  refund: 'unknown' | 'refused' | null;
}

const ASKED_FOR = { reason: 'asked for' };

/**
 * Creates a gateway in memory. A repeated idempotency key gets the stored result and has no second effect. The token of
 * a card is also its `gatewayMethodId`, and its text sets the card's behaviour:
 *
 * - With a decline code, every charge is declined with this code. The gateway also refuses to save the card if
 *   the card is verified or the text contains `unsaved`.
 * - With `unknown`, a charge has no known outcome, and a look-up finds none. While `faults.card` is `paid late`,
 *   every look-up finds the charge paid; while it is `paid`, none, so that the charge is sent again and succeeds.
 * - Four digits at the end are the card's last four digits.
 */
export function createFakeGateway(faults: GatewayFaults) {
  const decided = new Map<string, ChargeOutcome>();
  const returned = new Map<string, RefundOutcome>();
  const charges: { key: string; amountMinor: number; kind: string }[] = [];
  const refunds: { key: string; amountMinor: number }[] = [];
  const succeeded = (key: string) => ({ kind: 'succeeded', gatewayChargeId: `ch_${key}` }) as const;

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
    newestCharge: null,
    lookupDispute: null,
    lookupFraudWarning: null,
    lookupMethod: async () => ({ kind: 'removed' }),
    lookupRefund: async () => ({ kind: 'absent' }),
    async saveMethod({ token, verify }) {
      const code = verify || token.includes('unsaved') ? declineOf(token) : undefined;
      if (code) return { kind: 'refused', code, ...ASKED_FOR };
      const card = {
        gatewayMethodId: token,
        brand: 'visa',
        country: 'US',
        lastFourDigit: /\d{4}$/.exec(token)?.[0] ?? '4242',
        expiryMonth: 12,
        expiryYear: 2034,
      };
      return { kind: 'saved', card, enteredAt: Date.now() };
    },
    async charge({ key, gatewayMethodId, amountMinor }) {
      const known = decided.get(key);
      if (known) return known;
      const says = faults.card ?? gatewayMethodId;
      if (says.includes('unknown')) return { kind: 'unknown', ...ASKED_FOR };
      const code = declineOf(says);
      const outcome: ChargeOutcome = code
        ? {
            kind: 'declined',
            code,
            gatewayChargeId: null,
            gatewayCode: null,
            networkCode: null,
            advice: null,
          }
        : succeeded(key);
      decided.set(key, outcome);
      charges.push({ key, amountMinor, kind: outcome.kind });
      return outcome;
    },
    async lookup({ key }) {
      const known = decided.get(key);
      if (known && known.kind !== 'not_sent') return known;
      if (faults.card === 'paid late') return succeeded(key);
      return faults.card === 'paid' ? { kind: 'absent' } : { kind: 'unknown', ...ASKED_FOR };
    },
    async refund({ key, amountMinor }) {
      const known = returned.get(key);
      if (known) return known;
      if (faults.refund === 'unknown') return { kind: 'unknown', ...ASKED_FOR };
      if (faults.refund === 'refused') return { kind: 'refused', reason: 'charge_not_found' };
      const outcome: RefundOutcome = { kind: 'refunded', gatewayRefundId: `re_${key}` };
      returned.set(key, outcome);
      refunds.push({ key, amountMinor });
      return outcome;
    },
  };
  return { gateway, charges, refunds };
}

/** The dependencies of activities that charge at a gateway in memory. */
export const activityDeps = (db: Db, gateway: PaymentGateway) => ({
  db,
  gateways: oneGateway(gateway),
  links: LINKS,
  places: PLACES,
  orders: { ensureRunning: async () => true },
  wakeStream: async () => undefined,
  endPayerPriority: () => undefined,
  // A retry would not change an answer of the gateway in memory.
  sendBudget: { newSendsForMs: 0, pauseMs: 1 },
});

function declineOf(text: string): DeclineCode | undefined {
  const codes = new RegExp(Object.keys(DECLINES).join('|'));
  return codes.exec(text)?.[0] as DeclineCode | undefined;
}
