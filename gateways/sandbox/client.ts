import { isDeclineCode } from '../../domain/declines.ts';
import { DomainError } from '../../domain/errors.ts';
import { GatewayRejectedRequest, REFUND_REFUSALS } from '../port.ts';
import { readAdvice } from './advice.ts';
import type {
  ChargeRequest,
  DecidedCharge,
  ForcedDeclines,
  KnownRefund,
  LookupOutcome,
  MethodLookup,
  PaymentGateway,
  SavedCard,
  SaveMethodOutcome,
  NotSent,
  UnknownOutcome,
} from '../port.ts';
import { createExchange } from './exchange.ts';
import type { Exchange } from './exchange.ts';
import { TEST_CARDS } from './test-cards.ts';

export interface SandboxClientOptions {
  readonly url: string;
  readonly publicUrl: string;
  readonly apiKey: string;
  readonly timeoutMs?: number;
}

export interface SandboxClient extends PaymentGateway {
  readonly tokeniserUrl: string;
  /** Throws `service_unavailable` without a confirmation, and GatewayRejectedRequest for a refusal. */
  declineNext(order: ForcedDeclines): Promise<void>;
  /** Waits for open requests, then closes the connections. */
  close(): Promise<void>;
}

type SandboxExchange = ReturnType<typeof createExchange>;

const DEFAULT_TIMEOUT_MS = 8_000;

/** Maximum number of connections to the gateway. A worker needs fewer. */
const CONNECTIONS = 64;

export function createSandboxClient(options: SandboxClientOptions): SandboxClient {
  const exchange = createExchange({
    url: options.url,
    bearer: options.apiKey,
    timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    connections: CONNECTIONS,
  });

  return {
    name: 'sandbox',
    capabilities: { payerPresent: false, declinesExpired: true, mode: 'test' },
    tokeniserUrl: `${options.publicUrl.replace(/\/$/, '')}/tokenise`,
    testCards: TEST_CARDS.map(({ number, label }) => ({ number, label })),
    company: 'the sandbox gateway',
    openCardEntry: null,
    amountProblem: () => null,
    prepare: null,
    withdraw: null,
    readEvents: null,
    lookupDispute: null,
    lookupFraudWarning: null,
    newestCharge: null,

    charge: async (request) => {
      const sent = await exchange.send(chargeCall(request));
      const unprocessed = notProcessed(sent);
      if (unprocessed) return unprocessed;
      const body = accepted(sent);
      return body === null ? unknown(sent) : (decided(body['charge']) ?? unknown(sent));
    },

    lookupMethod: (gatewayMethodId) => lookupMethod(exchange, gatewayMethodId),

    lookup: async ({ key, amountMinor, currency }) => {
      const path = `/v1/charges?key=${encodeURIComponent(key)}`;
      const sent = await exchange.send({ method: 'GET', path });
      const body = accepted(sent);
      if (body?.['state'] === 'absent') return { kind: 'absent' };
      if (body?.['state'] === 'in_progress') return { kind: 'in_progress' };
      const charge = record(body?.['charge']);
      const found = decided(charge);
      if (found === null) return unknown(sent);
      if (charge?.['amountMinor'] === amountMinor && charge['currency'] === currency) return found;
      return anotherCharge(charge);
    },

    ...refundMethods(exchange),

    saveMethod: async (order) => {
      const sent = await exchange.send({ method: 'POST', path: '/v1/methods', body: order });
      const body = accepted(sent);
      return body === null ? unknown(sent) : (saved(body) ?? unknown(sent));
    },

    declineNext: async ({ subscriptionId, paymentMethodId, code, count, advice }) => {
      const target = subscriptionId === null ? { paymentMethodId } : { subscriptionId };
      const body = { ...target, code, count, advice };
      const sent = await exchange.send({ method: 'POST', path: '/control/declines', body });
      if (sent.kind === 'not_sent' || accepted(sent) === null) {
        throw new DomainError('service_unavailable');
      }
    },

    close: () => exchange.close(),
  };
}

function anotherCharge(charge: Record<string, unknown> | null): LookupOutcome {
  const held = `${String(charge?.['amountMinor'])} ${String(charge?.['currency'])}`;
  return { kind: 'another_charge', reason: `under this key the gateway has a charge of ${held}` };
}

async function lookupMethod(
  exchange: SandboxExchange,
  gatewayMethodId: string,
): Promise<MethodLookup> {
  const path = `/v1/methods?id=${encodeURIComponent(gatewayMethodId)}`;
  const sent = await exchange.send({ method: 'GET', path });
  const body = accepted(sent);
  if (body === null) return unknown(sent);
  const card = record(body['method']);
  if (card === null) return { kind: 'removed' };
  return isSavedCard(card) ? { kind: 'found', card } : unknown(sent);
}

function refundMethods({ send }: SandboxExchange): Pick<SandboxClient, 'refund' | 'lookupRefund'> {
  return {
    refund: async (order) => {
      const sent = await send({ method: 'POST', path: '/v1/refunds', body: order });
      const unprocessed = notProcessed(sent);
      if (unprocessed) return unprocessed;
      const body = accepted(sent);
      return body === null ? unknown(sent) : (knownRefund(body) ?? unknown(sent));
    },

    lookupRefund: async ({ key }) => {
      const path = `/v1/refunds?key=${encodeURIComponent(key)}`;
      const sent = await send({ method: 'GET', path });
      const body = accepted(sent);
      if (body?.['state'] === 'absent') return { kind: 'absent' };
      return body === null ? unknown(sent) : (knownRefund(body) ?? unknown(sent));
    },
  };
}

function chargeCall(request: ChargeRequest) {
  const { key, gatewayMethodId, amountMinor, currency, reference, openedAt } = request;
  return {
    method: 'POST' as const,
    path: '/v1/charges',
    headers: { 'idempotency-key': key },
    body: { gatewayMethodId, amountMinor, currency, reference, openedAt },
  };
}

/**
 * Returns the body of a 2xx answer, and null for an unknown outcome: also for a 4xx in another format, which a proxy
 * may have sent. Throws for the gateway's refusal.
 */
function accepted(sent: Exchange): Record<string, unknown> | null {
  if (sent.kind !== 'answered') return null;
  const body = record(sent.body);
  if (body === null) return null;
  if (sent.status >= 200 && sent.status < 300) return body;
  if (sent.status >= 400 && sent.status < 500 && typeof body['error'] === 'string') {
    throw new GatewayRejectedRequest(sent.status, body['error']);
  }
  return null;
}

/** Null if the request may have had an effect. The gateway refuses a wrong key before it reads the request. */
function notProcessed(sent: Exchange): NotSent | null {
  if (sent.kind === 'not_sent') return sent;
  const isKeyRefused = sent.kind === 'answered' && [401, 403].includes(sent.status);
  const code = isKeyRefused ? record(sent.body)?.['error'] : null;
  if (typeof code !== 'string') return null;
  return {
    kind: 'not_sent',
    reason: `the gateway refused our key: ${code}`,
    isAccountRefused: true,
  };
}

function unknown(sent: Exchange): UnknownOutcome {
  const reason = sent.kind === 'answered' ? `the gateway answered ${sent.status}` : sent.reason;
  return { kind: 'unknown', reason };
}

/** Returns null if the value is not a decided charge in the gateway's format. */
function decided(value: unknown): DecidedCharge | null {
  const charge = record(value);
  const id = charge?.['id'];
  if (typeof id !== 'string') return null;
  if (charge?.['outcome'] === 'succeeded') return { kind: 'succeeded', gatewayChargeId: id };
  if (charge?.['outcome'] !== 'declined') return null;
  const code = charge['code'];
  // A code that this adapter does not know is still a decline.
  return {
    kind: 'declined',
    code: isDeclineCode(code) ? code : 'card_declined',
    gatewayChargeId: id,
    gatewayCode: textOrNull(charge['gatewayCode']),
    networkCode: textOrNull(charge['networkCode']),
    advice: readAdvice(charge['advice']),
  };
}

const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null);

/** Returns null if the body is not an answer about a refund in the gateway's format. */
function knownRefund(body: Record<string, unknown>): KnownRefund | null {
  const reason = REFUND_REFUSALS.find((each) => each === body['refused']);
  if (reason !== undefined) return { kind: 'refused', reason };
  const refund = record(body['refund']);
  const id = refund?.['id'];
  if (typeof id !== 'string') return null;
  switch (refund?.['status']) {
    case 'succeeded':
      return { kind: 'refunded', gatewayRefundId: id };
    case 'pending':
      return { kind: 'pending', gatewayRefundId: id };
    case 'failed':
      return { kind: 'refused', reason: 'refund_failed' };
    default:
      return null;
  }
}

function saved(body: Record<string, unknown>): SaveMethodOutcome | null {
  const refused = record(body['refused']);
  const code = refused?.['refused'];
  if (isDeclineCode(code)) {
    return { kind: 'refused', code, reason: String(refused?.['reason']) };
  }
  const card = record(body['method']);
  const { enteredAt } = body;
  return card !== null && isSavedCard(card) && typeof enteredAt === 'number'
    ? { kind: 'saved', card, enteredAt }
    : null;
}

function isSavedCard(card: object): card is SavedCard {
  const { gatewayMethodId, brand, country, lastFourDigit, expiryMonth, expiryYear } =
    card as Partial<Record<keyof SavedCard, unknown>>;
  return (
    [gatewayMethodId, brand, lastFourDigit].every((value) => typeof value === 'string') &&
    (country === null || typeof country === 'string') &&
    [expiryMonth, expiryYear].every((value) => Number.isInteger(value))
  );
}

function record(value: unknown): Record<string, unknown> | null {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
}
