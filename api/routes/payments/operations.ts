import { LIST_NOTES, ListQueryFields } from '../../lists.ts';
import { nothing, page } from '../../openapi/answer-fields.ts';
import { bodyFields, extension, queryFields } from '../../openapi/operation.ts';
import type { Operation } from '../../openapi/operation.ts';
import { OneTimeChargeShape } from '../subscriptions/one-time-charge.ts';
import {
  CreatedIntent,
  exampleIntent,
  examplePaidIntent,
  Intent,
  INTENT_ID,
  OneTimeCharge,
  Refund,
  TokenisedCharge,
} from './answers.ts';
import { CANCEL_INTENT_PATH } from './routes.ts';
import {
  CancelIntentShape,
  ChargeTokenisedShape,
  CreateIntentShape,
  RefundShape,
} from './schema.ts';

const xIntentIdParam = { description: 'Id of a payment intent.', example: INTENT_ID };

const amountNote = 'In the smallest currency unit, within the bounds of the currency.';
const currencyNote = 'Three-letter ISO 4217 code.';

const chargeOperations: readonly Operation[] = [
  {
    operationId: 'chargeSubscriptionOnce',
    method: 'post',
    path: '/subscription/merchant/one-time-charge',
    tag: 'Subscriptions',
    summary: 'Charge a subscription’s payment method once',
    description:
      'Allowed in TRIALING, ACTIVE, UNPAID and PAUSED. Changes neither the cycles nor the status. A ' +
      'declined charge is answered 200 with status FAILED.',
    idempotencyKey: 'listed',
    body: bodyFields(
      OneTimeChargeShape,
      {
        subscriptionId: 'Id of the subscription.',
        amount: amountNote,
        currency: currencyNote,
        comments: 'Your own note.',
      },
      [
        {
          summary: 'An extra',
          value: {
            subscriptionId: 'sub_0002sSOLuQx1oB9bUeVtYw3c',
            amount: 750,
            currency: 'USD',
            comments: 'A box of biscuits',
          },
        },
      ],
    ),
    answer: {
      description: 'The charge was attempted.',
      schema: OneTimeCharge,
      examples: [
        {
          summary: 'Paid',
          value: { intentId: INTENT_ID, status: 'SUCCESS', errorCode: null, errorMessage: null },
        },
        {
          summary: 'Declined',
          value: {
            intentId: INTENT_ID,
            status: 'FAILED',
            errorCode: 'insufficient_funds',
            errorMessage: 'The account does not hold enough money for this payment.',
          },
        },
      ],
    },
    refusals: ['operation_not_allowed', 'resource_not_found'],
  },
  {
    operationId: 'chargeTokenisedPaymentMethod',
    method: 'post',
    path: '/payments/charge-tokenised-pm',
    tag: 'Payments',
    summary: 'Charge a saved payment method',
    description:
      'The payment method must belong to the customer. A declined charge is answered 200 with status ' +
      'FAILED.',
    idempotencyKey: 'listed',
    body: bodyFields(
      ChargeTokenisedShape,
      {
        pmId: 'Id of the saved payment method, from the callback, the event or the customer’s list.',
        customerId: 'Id of the customer that the payment method belongs to.',
        currency: currencyNote,
        amount: amountNote,
        receiptId: extension('Your own order id.'),
        storeFrontId: 'Stored with the intent. Not checked.',
        metadata: 'Your own key-value pairs.',
      },
      [
        {
          summary: 'A teapot',
          value: {
            pmId: 'pmt_0002sSOLuP0oT4bXWmA1nLdK',
            customerId: 'cus_0002sSOLtvYJpjM0P8rC2uQe',
            currency: 'USD',
            amount: 4_900,
          },
        },
      ],
    ),
    answer: {
      description: 'The charge was attempted.',
      schema: TokenisedCharge,
      examples: [
        { summary: 'Paid', value: { intentId: INTENT_ID, status: 'SUCCESS' } },
        {
          summary: 'Declined',
          value: { intentId: INTENT_ID, status: 'FAILED', errorCode: 'expired_card' },
        },
      ],
    },
    refusals: ['operation_not_allowed', 'resource_not_found'],
  },
];

const intentOperations: readonly Operation[] = [
  {
    operationId: 'createIntent',
    method: 'post',
    path: '/payments/create-intent',
    tag: 'Payments',
    summary: 'Create a one-time payment',
    description: 'Send the payer to `fwdUrl`. The page stays open for 24 hours.',
    isExtension: true,
    idempotencyKey: 'honoured',
    body: bodyFields(
      CreateIntentShape,
      {
        amount: amountNote,
        currency: currencyNote,
        customerDetails: 'The payer. The page asks for a missing name or e-mail address.',
        callbackUrl:
          'Where the payer’s browser goes afterwards, with `xpay_intent_id` and `status` added. ' +
          'The parameters are unsigned and never prove a payment.',
        receiptId: 'Your own order id.',
        description: 'What the payment is for.',
        cancelUrl: 'Where the payer’s browser goes when the payer cancels. Default: `callbackUrl`.',
        paymentMethods:
          'Payment methods that the payer may use. An unavailable method falls back to CARD.',
        metadata: 'Your own key-value pairs.',
        phoneNumberRequired: 'Whether the page asks for a telephone number. Default: false.',
        customerId:
          'Id of an existing customer. Without it a customer is created from the details.',
        storeFrontId: 'Stored with the intent. Not checked.',
        tokenise: 'Whether the payment method is saved for the customer. Default: false.',
      },
      [
        {
          summary: 'A teapot',
          value: {
            amount: 4_900,
            currency: 'USD',
            customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
            callbackUrl: 'https://merchant.example/thanks',
            receiptId: 'order-1001',
            description: 'A teapot',
          },
        },
      ],
    ),
    answer: {
      description: 'The payment intent was created.',
      schema: CreatedIntent,
      examples: [
        {
          summary: 'Created',
          value: { ...exampleIntent, fwdUrl: 'https://pay.example/payment/mYt0kEn' },
        },
      ],
    },
    refusals: ['resource_not_found'],
  },
  {
    operationId: 'getIntent',
    method: 'get',
    path: '/payments/v2/get-intent/:xIntentId',
    tag: 'Payments',
    summary: 'Read a payment intent',
    description:
      'Reads every kind of intent: a billing cycle, a one-time or tokenised charge, a hosted payment.',
    isExtension: true,
    params: { xIntentId: xIntentIdParam },
    answer: {
      description: 'The intent with all its attempts.',
      schema: Intent,
      examples: [{ summary: 'Paid', value: examplePaidIntent }],
    },
    refusals: ['resource_not_found'],
  },
  {
    operationId: 'listIntents',
    method: 'get',
    path: '/payments',
    tag: 'Payments',
    summary: 'List payment intents',
    description: 'Newest first, in pages.',
    isExtension: true,
    query: queryFields(ListQueryFields, LIST_NOTES),
    answer: {
      description: 'A page of payment intents.',
      schema: page(Intent),
      examples: [{ summary: 'The last page', value: { data: [examplePaidIntent], metadata: {} } }],
    },
  },
  {
    operationId: 'cancelIntent',
    method: 'post',
    path: CANCEL_INTENT_PATH,
    tag: 'Payments',
    summary: 'Cancel a payment intent',
    description:
      'The intent must never have been paid, must have no attempt in flight, and its checkout must be ' +
      'open. Cancelling the first intent of a subscription ends the subscription.',
    idempotencyKey: 'listed',
    params: { xIntentId: xIntentIdParam },
    body: bodyFields(
      CancelIntentShape,
      { xIntentId: 'Must equal the id in the path.' },
      [{ summary: 'By id', value: { xIntentId: INTENT_ID } }],
      { isRequired: false },
    ),
    answer: {
      description: 'The intent is CANCELLED.',
      schema: nothing,
      examples: [{ summary: 'Done', value: {} }],
    },
    refusals: ['operation_not_allowed', 'resource_not_found', 'payment_outcome_pending'],
  },
  {
    operationId: 'refundIntent',
    method: 'post',
    path: '/payments/merchant/refund',
    tag: 'Payments',
    summary: 'Refund a payment, fully or partly',
    description:
      'The intent must be paid. The refunds of an intent never exceed the amount that was paid.',
    isExtension: true,
    idempotencyKey: 'honoured',
    body: bodyFields(
      RefundShape,
      {
        xIntentId: 'Id of the paid intent.',
        amount: 'In the smallest currency unit. Default: all that is not refunded yet.',
      },
      [
        { summary: 'Full refund', value: { xIntentId: INTENT_ID } },
        { summary: 'Partial refund', value: { xIntentId: INTENT_ID, amount: 1_000 } },
      ],
    ),
    answer: {
      description: 'The gateway accepted the refund.',
      schema: Refund,
      examples: [
        {
          summary: 'Partial refund',
          value: {
            refundId: 'rf_0002sSOLuS2wE6rTyU9iOpAs',
            intentId: INTENT_ID,
            amount: 1_000,
            currency: 'USD',
            refundedAt: 1_795_262_400_000,
          },
        },
      ],
    },
    refusals: ['operation_not_allowed', 'resource_not_found', 'payment_outcome_pending'],
  },
];

export const paymentOperations = [...chargeOperations, ...intentOperations];
