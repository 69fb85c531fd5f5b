import { z } from 'zod';
import { findCustomer, insertCustomer } from '../../../db/repositories/customers/customers.ts';
import type { Customer } from '../../../db/repositories/customers/customers.ts';
import { listCustomers, listSubscriptions } from '../../../db/repositories/lists.ts';
import { listPaymentMethods } from '../../../db/repositories/customers/payment-methods.ts';
import type { SavedMethod } from '../../../db/repositories/customers/payment-methods.ts';
import { newId } from '../../../domain/ids.ts';
import {
  cancelAt,
  nextPaymentAt,
  SUBSCRIPTION_STATUSES,
} from '../../../domain/subscription/state.ts';
import {
  cardFields,
  epochMs,
  exampleCard,
  EXTENSION,
  id,
  page,
  presentCard,
} from '../../answer-fields.ts';
import { found, ok, withoutNulls } from '../../answers.ts';
import { customerDetails } from '../../payment-fields.ts';
import { inTransaction } from '../../idempotency.ts';
import { answerPage, FILTERS, listQuery } from '../../lists.ts';
import { route } from '../../route.ts';

const CUSTOMER_ID = 'cus_0002sSOLtvYJpjM0P8rC2uQe';

const customerIdParam = { description: 'Id of a customer.', example: CUSTOMER_ID };

const exampleDetails = {
  name: 'Ada Example',
  email: 'ada@example.com',
  contactNumber: '+441632960961',
  customerAddress: { country: 'GB', postalCode: 'SW1A 1AA' },
};

const CustomerAnswer = z
  .object({ customerId: id('cus', 'customer'), customerDetails })
  .meta({ id: 'Customer' });

const exampleCustomer = { customerId: CUSTOMER_ID, customerDetails: exampleDetails };

function presentCustomer({ id: customerId, details }: Customer) {
  return { customerId, customerDetails: details };
}

export const createCustomer = route({
  operationId: 'createCustomer',
  method: 'post',
  path: '/customer/create',
  tag: 'Customers',
  summary: 'Create a customer',
  description: 'Stores the details of a payer. A customer can have saved payment methods.',
  idempotencyKey: 'listed',
  body: {
    fields: { customerDetails: customerDetails.describe('Details of the payer.') },
    examples: [{ summary: 'A person', value: { customerDetails: exampleDetails } }],
  },
  answer: {
    description: 'The customer was created.',
    schema: z.object({ customerId: id('cus', 'customer') }),
    examples: [{ summary: 'Created', value: { customerId: CUSTOMER_ID } }],
  },
  handle: async (call, deps) =>
    inTransaction(call, deps, async (tx) => {
      const createdAt = deps.now();
      const customerId = newId('cus', createdAt, deps.random);
      await insertCustomer(tx, {
        merchantId: call.merchant.id,
        id: customerId,
        details: call.body.customerDetails,
        createdAt,
      });
      return { answer: ok({ customerId }) };
    }),
});

export const getCustomer = route({
  operationId: 'getCustomer',
  method: 'get',
  path: '/customer/:customerId',
  tag: 'Customers',
  summary: 'Read a customer',
  description: 'The details are returned exactly as they were given.',
  params: { customerId: customerIdParam },
  answer: {
    description: 'The customer.',
    schema: CustomerAnswer,
    examples: [{ summary: 'A person', value: exampleCustomer }],
  },
  refusals: ['resource_not_found'],
  handle: async ({ merchant, params }, { db }) => {
    const customer = found(await findCustomer(db, merchant.id, params.customerId), 'customer');
    return ok(presentCustomer(customer));
  },
});

export const getCustomers = route({
  operationId: 'listCustomers',
  method: 'get',
  path: '/customer',
  tag: 'Customers',
  summary: 'List customers',
  description: 'Newest first, in pages.',
  isExtension: true,
  query: { ...listQuery('cus'), email: FILTERS.email },
  answer: {
    description: 'A page of customers.',
    schema: page(CustomerAnswer),
    examples: [{ summary: 'The last page', value: { data: [exampleCustomer], metadata: {} } }],
  },
  handle: async (call, { db }) =>
    answerPage(call, (query) => listCustomers(db, query, call.query), presentCustomer),
});

const PaymentMethodToken = z
  .object({
    paymentMethodId: id('pmt', 'saved payment method'),
    ...cardFields,
    customerId: id('cus', 'customer'),
    status: z.enum(['LIVE', 'DELETED']),
    createdAt: epochMs('When the payment method was saved.'),
  })
  .meta({ id: 'PaymentMethodToken', ...EXTENSION });

function presentPaymentMethod(method: SavedMethod) {
  return {
    paymentMethodId: method.id,
    ...presentCard(method),
    customerId: method.customerId,
    status: method.status,
    createdAt: method.createdAt,
  };
}

export const getPaymentMethodTokens = route({
  operationId: 'listPaymentMethodTokens',
  method: 'get',
  path: '/customer/:customerId/payment-method-tokens',
  tag: 'Customers',
  summary: 'List the saved payment methods of a customer',
  description:
    '`POST /payments/charge-tokenised-pm` takes `paymentMethodId` as `pmId`. It accepts no new charge of a method with ' +
    'status DELETED. A charge that was ordered before the method was replaced may still be made.',
  isExtension: true,
  params: { customerId: customerIdParam },
  answer: {
    description: 'Every payment method of the customer.',
    schema: z.object({ data: z.array(PaymentMethodToken) }),
    examples: [
      {
        summary: 'One card',
        value: {
          data: [
            {
              paymentMethodId: 'pmt_0002sSOLuP0oT4bXWmA1nLdK',
              ...exampleCard,
              customerId: CUSTOMER_ID,
              status: 'LIVE',
              createdAt: 1_795_132_800_000,
            },
          ],
        },
      },
    ],
  },
  refusals: ['resource_not_found'],
  handle: async ({ merchant, params }, { db }) => {
    const customer = found(await findCustomer(db, merchant.id, params.customerId), 'customer');
    const methods = await listPaymentMethods(db, merchant.id, customer.id);
    return ok({ data: methods.map(presentPaymentMethod) });
  },
});

const STATE_SUBSCRIPTIONS_MAX = 100;

export const getCustomerState = route({
  operationId: 'getCustomerState',
  method: 'get',
  path: '/customer/:customerId/state',
  tag: 'Customers',
  summary: 'Read the subscriptions and the saved payment methods of a customer',
  description:
    'The newest 100 subscriptions with their status and the end of the paid period, and the payment methods ' +
    'that can be charged. Give access until the latest `currentPeriodEnd`, in every status.',
  isExtension: true,
  params: { customerId: customerIdParam },
  answer: {
    description: 'The state of the customer.',
    schema: z.object({
      customerId: id('cus', 'customer'),
      subscriptions: z
        .array(
          z.object({
            subscriptionId: id('sub', 'subscription'),
            status: z.enum(SUBSCRIPTION_STATUSES),
            currentPeriodEnd: epochMs(
              'End of the trial, then of the period that the payer has paid. Null before both.',
            ).nullable(),
            cancelAt: epochMs(
              'When the subscription ends after a cancellation at the end of its period. Absent without one.',
            ).optional(),
            nextPaymentDate: epochMs('As in the answer of getSubscription.').nullable(),
          }),
        )
        .meta({ description: 'Newest first.' }),
      paymentMethods: z.array(PaymentMethodToken),
    }),
    examples: [
      {
        summary: 'One subscription',
        value: {
          customerId: CUSTOMER_ID,
          subscriptions: [
            {
              subscriptionId: 'sub_0002sSOLuQx1oB9bUeVtYw3c',
              status: 'ACTIVE',
              currentPeriodEnd: 1_797_768_060_000,
              nextPaymentDate: 1_797_768_060_000,
            },
          ],
          paymentMethods: [],
        },
      },
    ],
  },
  refusals: ['resource_not_found'],
  handle: async ({ merchant, params: { customerId } }, { db }) => {
    found(await findCustomer(db, merchant.id, customerId), 'customer');
    const newest = { merchantId: merchant.id, limit: STATE_SUBSCRIPTIONS_MAX };
    const [subscriptions, methods] = await Promise.all([
      listSubscriptions(db, newest, { customerId }),
      listPaymentMethods(db, merchant.id, customerId),
    ]);
    return ok({
      customerId,
      subscriptions: subscriptions.map(({ id: subscriptionId, status, state }) => ({
        subscriptionId,
        status,
        currentPeriodEnd: state.currentPeriodEndAt,
        nextPaymentDate: nextPaymentAt(state),
        ...withoutNulls({ cancelAt: cancelAt(state) }),
      })),
      paymentMethods: methods
        .filter((method) => method.status === 'LIVE')
        .map(presentPaymentMethod),
    });
  },
});
