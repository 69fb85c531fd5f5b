import { Stripe } from 'stripe';
import type { GatewayHint } from '../../domain/gateway-hint.ts';

/** Maximum age of a signature, in s. Stripe gives each repeat of an event a new signature. */
const TOLERANCE_S = 300;

/**
 * Verifies the signature and returns the hint of the event: the object to look up. Accepts a signature by any of the
 * account's secrets, because two are valid during a rotation. A hint contains only ids and our key of the object.
 */
export function readEvents(
  webhookSecrets: readonly string[],
  rawBody: Buffer,
  signature: string | string[] | undefined,
): GatewayHint[] | 'bad_signature' {
  if (typeof signature !== 'string') return 'bad_signature';
  for (const secret of webhookSecrets) {
    try {
      return [hintOf(Stripe.webhooks.constructEvent(rawBody, signature, secret, TOLERANCE_S))];
    } catch (error) {
      if (!(error instanceof Stripe.errors.StripeSignatureVerificationError)) throw error;
    }
  }
  return 'bad_signature';
}

function hintOf(event: Stripe.Event): GatewayHint {
  const { id: eventId, type } = event;
  return { eventId, type, ...subjectOf(event) };
}

type Subject = GatewayHint extends infer Hint
  ? Hint extends GatewayHint
    ? Omit<Hint, 'eventId' | 'type'>
    : never
  : never;

const IGNORED: Subject = { kind: 'ignored' };

function subjectOf({ type, data: { object, previous_attributes: before } }: Stripe.Event): Subject {
  if (object.object === 'payment_intent') {
    return { kind: 'charge', gatewayChargeId: object.id, key: object.metadata['key'] ?? null };
  }
  if (object.object === 'refund') {
    return { kind: 'refund', gatewayRefundId: object.id, key: object.metadata?.['key'] ?? null };
  }
  if (object.object === 'dispute') {
    const gatewayChargeId = idOf(object.payment_intent);
    if (gatewayChargeId === null) return IGNORED;
    return { kind: 'dispute', gatewayDisputeId: object.id, gatewayChargeId };
  }
  if (object.object === 'payment_method') {
    // A detached payment method has no customer any more.
    const former = (before as { customer?: unknown } | undefined)?.customer;
    const customer = idOf(object.customer) ?? (typeof former === 'string' ? former : null);
    const gatewayMethodId = customer === null ? object.id : `${customer}/${object.id}`;
    return { kind: 'method', gatewayMethodId };
  }
  if (type === 'checkout.session.completed' && object.object === 'checkout.session') {
    const { mode, client_reference_id: session } = object;
    if (mode === 'setup' && session !== null) {
      return { kind: 'card_entry', token: object.id, session };
    }
  }
  return IGNORED;
}

function idOf(reference: string | { id: string } | null | undefined): string | null {
  return typeof reference === 'object' ? (reference?.id ?? null) : (reference ?? null);
}
