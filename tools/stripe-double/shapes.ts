import type { StripeObject } from './errors.ts';
import type { TestCard } from './cards.ts';

/** New objects with every field that Stripe always sends. Instants are epoch seconds, like Stripe's. */

/** Fields that are null in a new object, by their names. */
function nulls(names: string): StripeObject {
  return Object.fromEntries(
    names
      .trim()
      .split(/\s+/)
      .map((name) => [name, null]),
  );
}

const NO_ADDRESS = nulls('city country line1 line2 postal_code state');

export function customer(id: string, created: number, fields: StripeObject): StripeObject {
  return {
    id,
    object: 'customer',
    ...nulls(`
      address currency default_source description discount email name phone shipping
      test_clock`),
    balance: 0,
    created,
    delinquent: false,
    invoice_prefix: id.slice(-8).toUpperCase(),
    invoice_settings: {
      custom_fields: null,
      default_payment_method: null,
      footer: null,
      rendering_options: null,
    },
    livemode: false,
    metadata: {},
    next_invoice_sequence: 1,
    preferred_locales: [],
    tax_exempt: 'none',
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
    ...nulls(`
      application automatic_payment_methods cancellation_reason customer customer_account
      description flow_directions last_setup_error latest_attempt mandate next_action
      on_behalf_of payment_method payment_method_configuration_details single_use_mandate`),
    client_secret: `${id}_secret_${id.slice(-12)}`,
    created,
    livemode: false,
    metadata: {},
    payment_method_options: {
      card: { mandate_options: null, network: null, request_three_d_secure: 'automatic' },
    },
    payment_method_types: ['card'],
    status: 'requires_payment_method',
    usage: 'off_session',
    ...fields,
  };
}

export function paymentIntent(id: string, created: number, fields: StripeObject): StripeObject {
  return {
    id,
    object: 'payment_intent',
    ...nulls(`
      application application_fee_amount automatic_payment_methods canceled_at
      cancellation_reason customer customer_account description last_payment_error
      latest_charge next_action on_behalf_of payment_method
      payment_method_configuration_details processing receipt_email review setup_future_usage
      shipping statement_descriptor statement_descriptor_suffix transfer_data transfer_group`),
    amount: 0,
    amount_capturable: 0,
    amount_details: { tip: {} },
    amount_received: 0,
    capture_method: 'automatic_async',
    client_secret: `${id}_secret_${id.slice(-12)}`,
    confirmation_method: 'automatic',
    created,
    currency: 'usd',
    livemode: false,
    metadata: {},
    payment_method_options: {
      card: {
        installments: null,
        mandate_options: null,
        network: null,
        request_three_d_secure: 'automatic',
      },
    },
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
    id,
    object: 'charge',
    ...nulls(`
      application application_fee application_fee_amount balance_transaction
      calculated_statement_descriptor failure_balance_transaction failure_code failure_message
      on_behalf_of outcome receipt_email receipt_number receipt_url review shipping
      source_transfer statement_descriptor statement_descriptor_suffix transfer_data
      transfer_group`),
    amount: intent['amount'],
    amount_captured: 0,
    amount_refunded: 0,
    billing_details: method['billing_details'],
    captured: false,
    created,
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
    id,
    object: 'refund',
    ...nulls(`
      balance_transaction charge payment_intent reason receipt_number source_transfer_reversal
      transfer_reversal`),
    amount: 0,
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
    status: 'succeeded',
    ...fields,
  };
}

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

/** A new Checkout Session with every field that Stripe always sends. */
export function checkoutSession(id: string, created: number, fields: StripeObject): StripeObject {
  return {
    id,
    object: 'checkout.session',
    ...nulls(`
      adaptive_pricing after_expiration allow_promotion_codes amount_subtotal amount_total
      billing_address_collection cancel_url client_reference_id client_secret
      collected_information consent consent_collection currency currency_conversion customer
      customer_account customer_creation customer_details customer_email discounts invoice
      invoice_creation locale origin_context payment_intent payment_link
      payment_method_collection payment_method_configuration_details permissions
      recovered_from saved_payment_method_options setup_intent shipping_address_collection
      shipping_cost submit_type subscription success_url total_details url wallet_options`),
    automatic_tax: { enabled: false, liability: null, provider: null, status: null },
    created,
    custom_fields: [],
    custom_text: {
      after_submit: null,
      shipping_address: null,
      submit: null,
      terms_of_service_acceptance: null,
    },
    livemode: false,
    metadata: {},
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
