import type { StripeObject } from './errors.ts';
import type { TestCard } from './cards.ts';

/** New objects with the fields that Stripe requires, and those that are read somewhere. Instants are epoch seconds. */

/** Fields that are null in a new object, by their names. */
function nulls(names: string): StripeObject {
  return Object.fromEntries(Array.from(names.matchAll(/\w+/g), ([name]) => [name, null]));
}

/** The fields that all objects have. */
function base(object: string, id: string, created: number): StripeObject {
  return { id, object, created, metadata: {} };
}

const NO_ADDRESS = nulls('city country line1 line2 postal_code state');

export function customer(id: string, created: number, fields: StripeObject): StripeObject {
  return {
    ...base('customer', id, created),
    ...nulls('address currency description email name phone test_clock'),
    balance: 0,
    delinquent: false,
    livemode: false,
    ...fields,
  };
}

export interface EnteredCard {
  readonly card: TestCard;
  readonly expiryMonth: number;
  readonly expiryYear: number;
  readonly name: string | null;
}

export function paymentMethod(
  id: string,
  created: number,
  { card, expiryMonth, expiryYear, name }: EnteredCard,
): StripeObject {
  return {
    ...base('payment_method', id, created),
    ...nulls('customer customer_account'),
    allow_redisplay: 'limited',
    billing_details: { address: NO_ADDRESS, email: null, name, phone: null, tax_id: null },
    card: {
      brand: card.brand,
      checks: { address_line1_check: null, address_postal_code_check: null, cvc_check: 'pass' },
      country: 'US',
      display_brand: card.brand,
      exp_month: expiryMonth,
      exp_year: expiryYear,
      fingerprint: `fp${card.number.slice(-8)}`,
      funding: 'credit',
      generated_from: null,
      last4: card.number.slice(-4),
      networks: { available: [card.brand], preferred: null },
      regulated_status: 'unregulated',
      three_d_secure_usage: { supported: true },
      wallet: null,
    },
    livemode: false,
    type: 'card',
  };
}

export function setupIntent(id: string, created: number, fields: StripeObject): StripeObject {
  return {
    ...base('setup_intent', id, created),
    ...nulls(`
      cancellation_reason customer description last_setup_error next_action payment_method`),
    client_secret: `${id}_secret_${id.slice(-12)}`,
    livemode: false,
    payment_method_types: ['card'],
    status: 'requires_payment_method',
    usage: 'off_session',
    ...fields,
  };
}

export function paymentIntent(id: string, created: number, fields: StripeObject): StripeObject {
  return {
    ...base('payment_intent', id, created),
    ...nulls(`
      canceled_at cancellation_reason customer description last_payment_error latest_charge
      next_action payment_method processing receipt_email setup_future_usage`),
    amount: 0,
    amount_received: 0,
    capture_method: 'automatic_async',
    client_secret: `${id}_secret_${id.slice(-12)}`,
    confirmation_method: 'automatic',
    currency: 'usd',
    livemode: false,
    payment_method_types: ['card'],
    status: 'requires_payment_method',
    ...fields,
  };
}

/** `intent` is the PaymentIntent and `method` the PaymentMethod of the charge. */
export function charge(
  id: string,
  created: number,
  intent: StripeObject,
  method: StripeObject,
): StripeObject {
  return {
    ...base('charge', id, created),
    ...nulls('failure_code failure_message outcome receipt_email'),
    amount: intent['amount'],
    amount_captured: 0,
    amount_refunded: 0,
    billing_details: method['billing_details'],
    captured: false,
    currency: intent['currency'],
    customer: intent['customer'],
    description: intent['description'],
    disputed: false,
    fraud_details: {},
    livemode: false,
    metadata: intent['metadata'],
    paid: false,
    payment_intent: intent['id'],
    payment_method: method['id'],
    payment_method_details: { type: 'card' },
    refunded: false,
    status: 'pending',
  };
}

export function refund(id: string, created: number, fields: StripeObject): StripeObject {
  return {
    ...base('refund', id, created),
    ...nulls('charge payment_intent reason'),
    amount: 0,
    currency: 'usd',
    status: 'succeeded',
    ...fields,
  };
}

/** Time, in s, for a merchant to answer a dispute. */
const EVIDENCE_TIME = 7 * 86_400;

export function dispute(id: string, created: number, fields: StripeObject): StripeObject {
  return {
    ...base('dispute', id, created),
    ...nulls('charge payment_intent'),
    amount: 0,
    balance_transactions: [],
    currency: 'usd',
    enhanced_eligibility_types: [],
    evidence: { enhanced_evidence: {} },
    evidence_details: {
      due_by: created + EVIDENCE_TIME,
      enhanced_eligibility: {},
      has_evidence: false,
      past_due: false,
      submission_count: 0,
    },
    is_charge_refundable: false,
    livemode: false,
    reason: 'fraudulent',
    status: 'needs_response',
    ...fields,
  };
}

export function fraudWarning(id: string, created: number, fields: StripeObject): StripeObject {
  const { metadata: _, ...own } = base('radar.early_fraud_warning', id, created);
  return {
    ...own,
    actionable: true,
    fraud_type: 'made_with_stolen_card',
    livemode: false,
    ...fields,
  };
}

export function account(id: string, created: number): StripeObject {
  return {
    ...base('account', id, created),
    email: null,
    business_type: 'company',
    capabilities: { card_payments: 'active', transfers: 'active' },
    charges_enabled: true,
    country: 'US',
    default_currency: 'usd',
    details_submitted: true,
    payouts_enabled: true,
    type: 'standard',
  };
}

export function checkoutSession(id: string, created: number, fields: StripeObject): StripeObject {
  return {
    ...base('checkout.session', id, created),
    ...nulls(`
      cancel_url client_reference_id currency customer customer_creation customer_details
      customer_email locale payment_intent setup_intent success_url url`),
    automatic_tax: { enabled: false, liability: null, provider: null, status: null },
    custom_fields: [],
    livemode: false,
    mode: 'setup',
    payment_method_options: {},
    payment_method_types: ['card'],
    payment_status: 'no_payment_required',
    phone_number_collection: { enabled: false },
    shipping_options: [],
    status: 'open',
    ui_mode: 'hosted_page',
    ...fields,
  };
}
