import type { StripeObject } from './errors.ts';
import type { TestCard } from './cards.ts';

/** New objects with every field that Stripe always sends. Instants are epoch seconds, like Stripe's. */

const NO_ADDRESS = {
  city: null,
  country: null,
  line1: null,
  line2: null,
  postal_code: null,
  state: null,
};

export function customer(id: string, created: number, fields: StripeObject): StripeObject {
  return {
    id,
    object: 'customer',
    address: null,
    balance: 0,
    created,
    currency: null,
    default_source: null,
    delinquent: false,
    description: null,
    discount: null,
    email: null,
    invoice_prefix: id.slice(-8).toUpperCase(),
    invoice_settings: {
      custom_fields: null,
      default_payment_method: null,
      footer: null,
      rendering_options: null,
    },
    livemode: false,
    metadata: {},
    name: null,
    next_invoice_sequence: 1,
    phone: null,
    preferred_locales: [],
    shipping: null,
    tax_exempt: 'none',
    test_clock: null,
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
    id,
    object: 'payment_method',
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
    created,
    customer: null,
    customer_account: null,
    livemode: false,
    metadata: {},
    type: 'card',
  };
}

export function setupIntent(id: string, created: number, fields: StripeObject): StripeObject {
  return {
    id,
    object: 'setup_intent',
    application: null,
    automatic_payment_methods: null,
    cancellation_reason: null,
    client_secret: `${id}_secret_${id.slice(-12)}`,
    created,
    customer: null,
    customer_account: null,
    description: null,
    flow_directions: null,
    last_setup_error: null,
    latest_attempt: null,
    livemode: false,
    mandate: null,
    metadata: {},
    next_action: null,
    on_behalf_of: null,
    payment_method: null,
    payment_method_configuration_details: null,
    payment_method_options: {
      card: { mandate_options: null, network: null, request_three_d_secure: 'automatic' },
    },
    payment_method_types: ['card'],
    single_use_mandate: null,
    status: 'requires_payment_method',
    usage: 'off_session',
    ...fields,
  };
}

export function paymentIntent(id: string, created: number, fields: StripeObject): StripeObject {
  return {
    id,
    object: 'payment_intent',
    amount: 0,
    amount_capturable: 0,
    amount_details: { tip: {} },
    amount_received: 0,
    application: null,
    application_fee_amount: null,
    automatic_payment_methods: null,
    canceled_at: null,
    cancellation_reason: null,
    capture_method: 'automatic_async',
    client_secret: `${id}_secret_${id.slice(-12)}`,
    confirmation_method: 'automatic',
    created,
    currency: 'usd',
    customer: null,
    customer_account: null,
    description: null,
    last_payment_error: null,
    latest_charge: null,
    livemode: false,
    metadata: {},
    next_action: null,
    on_behalf_of: null,
    payment_method: null,
    payment_method_configuration_details: null,
    payment_method_options: {
      card: {
        installments: null,
        mandate_options: null,
        network: null,
        request_three_d_secure: 'automatic',
      },
    },
    payment_method_types: ['card'],
    processing: null,
    receipt_email: null,
    review: null,
    setup_future_usage: null,
    shipping: null,
    statement_descriptor: null,
    statement_descriptor_suffix: null,
    status: 'requires_payment_method',
    transfer_data: null,
    transfer_group: null,
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
  const card = method['card'] as StripeObject;
  return {
    id,
    object: 'charge',
    amount: intent['amount'],
    amount_captured: 0,
    amount_refunded: 0,
    application: null,
    application_fee: null,
    application_fee_amount: null,
    balance_transaction: null,
    billing_details: method['billing_details'],
    calculated_statement_descriptor: null,
    captured: false,
    created,
    currency: intent['currency'],
    customer: intent['customer'],
    description: intent['description'],
    disputed: false,
    failure_balance_transaction: null,
    failure_code: null,
    failure_message: null,
    fraud_details: {},
    livemode: false,
    metadata: intent['metadata'],
    on_behalf_of: null,
    outcome: null,
    paid: false,
    payment_intent: intent['id'],
    payment_method: method['id'],
    payment_method_details: { card: chargedCard(card, intent), type: 'card' },
    receipt_email: null,
    receipt_number: null,
    receipt_url: null,
    refunded: false,
    review: null,
    shipping: null,
    source_transfer: null,
    statement_descriptor: null,
    statement_descriptor_suffix: null,
    status: 'pending',
    transfer_data: null,
    transfer_group: null,
  };
}

function chargedCard(card: StripeObject, intent: StripeObject): StripeObject {
  return {
    amount_authorized: intent['amount'],
    authorization_code: null,
    brand: card['brand'],
    checks: card['checks'],
    country: card['country'],
    exp_month: card['exp_month'],
    exp_year: card['exp_year'],
    extended_authorization: { status: 'disabled' },
    fingerprint: card['fingerprint'],
    funding: card['funding'],
    incremental_authorization: { status: 'unavailable' },
    installments: null,
    last4: card['last4'],
    mandate: null,
    multicapture: { status: 'unavailable' },
    network: card['brand'],
    network_token: { used: false },
    network_transaction_id: null,
    overcapture: { maximum_amount_capturable: intent['amount'], status: 'unavailable' },
    regulated_status: 'unregulated',
    three_d_secure: null,
    transaction_link_id: null,
    wallet: null,
  };
}

export function refund(id: string, created: number, fields: StripeObject): StripeObject {
  return {
    id,
    object: 'refund',
    amount: 0,
    balance_transaction: null,
    charge: null,
    created,
    currency: 'usd',
    destination_details: {
      card: {
        reference_status: 'pending',
        reference_type: 'acquirer_reference_number',
        type: 'refund',
      },
      type: 'card',
    },
    metadata: {},
    payment_intent: null,
    reason: null,
    receipt_number: null,
    source_transfer_reversal: null,
    status: 'succeeded',
    transfer_reversal: null,
    ...fields,
  };
}

const EVIDENCE = [
  'access_activity_log',
  'billing_address',
  'cancellation_policy',
  'cancellation_policy_disclosure',
  'cancellation_rebuttal',
  'customer_communication',
  'customer_email_address',
  'customer_name',
  'customer_purchase_ip',
  'customer_signature',
  'duplicate_charge_documentation',
  'duplicate_charge_explanation',
  'duplicate_charge_id',
  'product_description',
  'receipt',
  'refund_policy',
  'refund_policy_disclosure',
  'refund_refusal_explanation',
  'service_date',
  'service_documentation',
  'shipping_address',
  'shipping_carrier',
  'shipping_date',
  'shipping_documentation',
  'shipping_tracking_number',
  'uncategorized_file',
  'uncategorized_text',
];

/** Time, in s, for a merchant to answer a dispute. */
const EVIDENCE_TIME = 7 * 86_400;

export function dispute(id: string, created: number, fields: StripeObject): StripeObject {
  return {
    id,
    object: 'dispute',
    amount: 0,
    balance_transactions: [],
    charge: null,
    created,
    currency: 'usd',
    enhanced_eligibility_types: [],
    evidence: {
      ...Object.fromEntries(EVIDENCE.map((name) => [name, null])),
      enhanced_evidence: {},
    },
    evidence_details: {
      due_by: created + EVIDENCE_TIME,
      enhanced_eligibility: {},
      has_evidence: false,
      past_due: false,
      submission_count: 0,
    },
    is_charge_refundable: false,
    livemode: false,
    metadata: {},
    payment_intent: null,
    reason: 'fraudulent',
    status: 'needs_response',
    ...fields,
  };
}

export function account(id: string, created: number): StripeObject {
  return {
    id,
    object: 'account',
    business_type: 'company',
    capabilities: { card_payments: 'active', transfers: 'active' },
    charges_enabled: true,
    country: 'US',
    created,
    default_currency: 'usd',
    details_submitted: true,
    email: null,
    metadata: {},
    payouts_enabled: true,
    type: 'standard',
  };
}
