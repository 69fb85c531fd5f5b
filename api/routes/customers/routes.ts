import { z } from 'zod';
import {
  findCustomer,
  insertCustomer,
  updateCustomer,
} from '../../../db/repositories/customers/customers.ts';
import type { Customer } from '../../../db/repositories/customers/customers.ts';
import {
  listCustomers,
  listPaymentMethods,
  listSubscriptions,
} from '../../../db/repositories/lists.ts';
import {
  deleteUnusedMethod,
  findMethod,
  SAVED_STATUSES,
} from '../../../db/repositories/customers/payment-methods.ts';
import type { SavedMethod } from '../../../db/repositories/customers/payment-methods.ts';
import { DomainError } from '../../../domain/errors.ts';
import { newId } from '../../../domain/ids.ts';
import { cancelAt, nextPaymentAt } from '../../../domain/subscription/state.ts';
import {
  cardFields,
  doneAnswer,
  epochMs,
  exampleCard,
  EXTENSION,
  id,
  pageAnswer,
  presentCard,
  subscriptionStatus,
} from '../../answer-fields.ts';
import { found, notFound, ok, withoutNulls } from '../../http/request.ts';
import { customerDetails } from '../../fields.ts';
import { writeOnce } from '../../http/idempotency.ts';
import { answerPage, FILTERS, listQuery, statusFilter } from '../../lists.ts';
import { route } from '../../http/route.ts';

const CUSTOMER_ID = 'cus_0002sSOLtvYJpjM0P8rC2uQe';
const PMT_ID = 'pmt_0002sSOLuP0oT4bXWmA1nLdK';

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
    examples: { 'A person': { customerDetails: exampleDetails } },
  },
  answer: {
    description: 'The customer was created.',
    schema: z.object({ customerId: id('cus', 'customer') }),
    examples: { Created: { customerId: CUSTOMER_ID } },
  },
  handle: async (call, deps) =>
    writeOnce(call, deps, async (tx) => {
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
    examples: { 'A person': exampleCustomer },
  },
  refusals: ['resource_not_found'],
  handle: async ({ merchant, params }, { db }) => {
    const customer = found(await findCustomer(db, merchant.id, params.customerId), 'customer');
    return ok(presentCustomer(customer));
  },
});

export const updateCustomerDetails = route({
  operationId: 'updateCustomer',
  method: 'put',
  path: '/customer/:customerId',
  tag: 'Customers',
  summary: 'Change the details of a customer',
  description:
    'Replaces the fields that are given and keeps the others; `customerAddress` is one field, and null empties a field. ' +
    'Subscriptions and payments that exist keep the details with which they were made.',
  isExtension: true,
  idempotencyKey: 'honoured',
  params: { customerId: customerIdParam },
  body: {
    fields: { customerDetails: customerDetails.describe('The details that change.') },
    examples: { 'Another address': { customerDetails: { email: 'ada@example.com' } } },
  },
  answer: {
    description: 'The customer after the change.',
    schema: CustomerAnswer,
    examples: { 'A person': exampleCustomer },
  },
  refusals: ['resource_not_found'],
  handle: async (call, deps) =>
    writeOnce(call, deps, async (tx) => {
      const { merchant, params, body } = call;
      const change = { id: params.customerId, details: body.customerDetails };
      const changed = await updateCustomer(tx, { merchantId: merchant.id, ...change });
      return { answer: ok(presentCustomer(found(changed, 'customer'))) };
    }),
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
  answer: pageAnswer('A page of customers.', CustomerAnswer, exampleCustomer),
  handle: async (call, { db }) =>
    answerPage(call, (query) => listCustomers(db, query, call.query), presentCustomer),
});

const PaymentMethodToken = z
  .object({
    paymentMethodId: id('pmt', 'saved payment method'),
    ...cardFields,
    customerId: id('cus', 'customer'),
    status: z.enum(SAVED_STATUSES),
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

/** More than a customer has, so that a request without `limit` gets all. */
const METHODS_LIMIT_DEFAULT = 1_000;

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
  query: { ...listQuery('pmt', METHODS_LIMIT_DEFAULT), status: statusFilter(SAVED_STATUSES) },
  answer: pageAnswer(
    'The payment methods of the customer.',
    PaymentMethodToken,
    {
      paymentMethodId: PMT_ID,
      ...exampleCard,
      customerId: CUSTOMER_ID,
      status: 'LIVE',
      createdAt: 1_795_132_800_000,
    },
    { summary: 'One card' },
  ),
  refusals: ['resource_not_found'],
  handle: async (call, { db }) => {
    const { merchant, params, query } = call;
    const customer = found(await findCustomer(db, merchant.id, params.customerId), 'customer');
    const filters = { customerId: customer.id, status: query.status };
    return answerPage(
      call,
      (listed) => listPaymentMethods(db, listed, filters),
      presentPaymentMethod,
    );
  },
});

export const deletePaymentMethodToken = route({
  operationId: 'deletePaymentMethodToken',
  method: 'delete',
  path: '/customer/:customerId/payment-method-tokens/:pmId',
  tag: 'Customers',
  summary: 'Delete a saved payment method of a customer',
  description:
    'No new charge of it is accepted; one that was ordered before may still be made. Refused while a subscription that ' +
    'has not ended charges it.',
  isExtension: true,
  idempotencyKey: 'honoured',
  params: {
    customerId: customerIdParam,
    pmId: { description: 'Id of a saved payment method.', example: PMT_ID },
  },
  answer: doneAnswer('The payment method has the status DELETED.'),
  refusals: ['operation_not_allowed', 'resource_not_found'],
  handle: async (call, deps) => {
    const { customerId, pmId } = call.params;
    const merchantId = call.merchant.id;
    return writeOnce(call, deps, async (tx) => {
      const method = await findMethod(tx, merchantId, pmId);
      if (method?.customerId !== customerId || method.status === 'PENDING') {
        throw notFound('payment method');
      }
      const user = await deleteUnusedMethod(tx, merchantId, pmId);
      if (user === null) return { answer: ok({}) };
      throw new DomainError(
        'operation_not_allowed',
        `The subscription ${user} charges this payment method. Replace the method there, or cancel the subscription.`,
      );
    });
  },
});

const STATE_RECORDS_MAX = 100;

export const getCustomerState = route({
  operationId: 'getCustomerState',
  method: 'get',
  path: '/customer/:customerId/state',
  tag: 'Customers',
  summary: 'Read the subscriptions and the saved payment methods of a customer',
  description:
    'The newest 100 subscriptions with their status and the end of the paid period, and the newest 100 payment methods ' +
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
            status: subscriptionStatus,
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
    examples: {
      'One subscription': {
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
  },
  refusals: ['resource_not_found'],
  handle: async ({ merchant, params: { customerId } }, { db }) => {
    found(await findCustomer(db, merchant.id, customerId), 'customer');
    const newest = { merchantId: merchant.id, limit: STATE_RECORDS_MAX };
    const [subscriptions, methods] = await Promise.all([
      listSubscriptions(db, newest, { customerId }),
      listPaymentMethods(db, newest, { customerId, status: ['LIVE'] }),
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
      paymentMethods: methods.map(presentPaymentMethod),
    });
  },
});
