import { Stripe } from 'stripe';
import type { GatewayHint } from '../../domain/gateway-hint.ts';
import { isStorable } from '../../domain/storable-text.ts';

/** Maximum age of a signature, in s. Stripe gives each repeat of an event a new signature. */
const TOLERANCE_S = 300;

/**
 * Verifies the signature, and returns the object that the event names, with ids only. During a rotation two secrets are
 * valid.
 */
export function readEvents(
  webhookSecrets: readonly string[],
  rawBody: Buffer,
  signature: string | string[] | undefined,
): GatewayHint[] | 'bad_signature' {
  if (typeof signature !== 'string') return 'bad_signature';
  const signatures = Stripe.webhooks.signature;
  if (signatures === null) throw new Error('this Stripe client verifies no signatures');
  for (const secret of webhookSecrets) {
    try {
      signatures.verifyHeader(rawBody, signature, secret, TOLERANCE_S);
      return hintsOf(rawBody);
    } catch (error) {
      if (!(error instanceof Stripe.errors.StripeSignatureVerificationError)) throw error;
    }
  }
  return 'bad_signature';
}

/** Returns no hint for a body that is no event, such as a thin event of another API version. */
function hintsOf(rawBody: Buffer): GatewayHint[] {
  const event = parsed(rawBody);
  const eventId = textOf(event?.['id']);
  const type = textOf(event?.['type']);
  const data = recordOf(event?.['data']);
  const object = recordOf(data?.['object']);
  if (eventId === null || type === null || object === null) return [];
  return [{ eventId, type, ...subjectOf(type, object, recordOf(data?.['previous_attributes'])) }];
}

function parsed(rawBody: Buffer): StripeFields | null {
  try {
    return recordOf(JSON.parse(rawBody.toString('utf8')));
  } catch {
    return null;
  }
}

type StripeFields = Readonly<Record<string, unknown>>;

function recordOf(value: unknown): StripeFields | null {
  return typeof value === 'object' && value !== null ? (value as StripeFields) : null;
}

/** Maximum length of an id, a type or a key. Stripe's ids have at most 255 characters. */
const TEXT_LENGTH_MAX = 255;

/** Returns a text that the database can store; null for any other value. */
function textOf(value: unknown): string | null {
  return typeof value === 'string' && value.length <= TEXT_LENGTH_MAX && isStorable(value)
    ? value
    : null;
}

type Subject = GatewayHint extends infer Hint
  ? Hint extends GatewayHint
    ? Omit<Hint, 'eventId' | 'type'>
    : never
  : never;

const IGNORED: Subject = { kind: 'ignored' };

function subjectOf(type: string, object: StripeFields, before: StripeFields | null): Subject {
  const id = textOf(object['id']);
  if (id === null) return IGNORED;
  switch (object['object']) {
    case 'payment_intent':
      return { kind: 'charge', gatewayChargeId: id };
    case 'refund': {
      const key = textOf(recordOf(object['metadata'])?.['key']);
      return { kind: 'refund', gatewayRefundId: id, key };
    }
    case 'dispute': {
      const gatewayChargeId = idOf(object['payment_intent']);
      return gatewayChargeId === null
        ? IGNORED
        : { kind: 'dispute', gatewayDisputeId: id, gatewayChargeId };
    }
    case 'radar.early_fraud_warning': {
      const gatewayChargeId = idOf(object['payment_intent']);
      return gatewayChargeId === null
        ? IGNORED
        : { kind: 'fraud_warning', gatewayWarningId: id, gatewayChargeId };
    }
    case 'payment_method': {
      // A detached payment method has no customer any more.
      const customer = idOf(object['customer']) ?? idOf(before?.['customer']);
      return { kind: 'method', gatewayMethodId: customer === null ? id : `${customer}/${id}` };
    }
    case 'mandate': {
      // A mandate that ended may have taken its payment method along.
      const method = idOf(object['payment_method']);
      return method === null ? IGNORED : { kind: 'method', gatewayMethodId: method };
    }
    case 'checkout.session': {
      const session = textOf(object['client_reference_id']);
      const isEntered = type === 'checkout.session.completed' && object['mode'] === 'setup';
      return isEntered && session !== null ? { kind: 'card_entry', token: id, session } : IGNORED;
    }
    default:
      return IGNORED;
  }
}

function idOf(reference: unknown): string | null {
  return textOf(recordOf(reference)?.['id'] ?? reference);
}
