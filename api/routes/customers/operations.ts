import { z } from 'zod';
import {
  cardMetadata,
  epochMs,
  EXTENSION,
  id,
  page,
  paymentMethodKind,
} from '../../openapi/answer-fields.ts';
import { bodyFields, queryFields } from '../../openapi/operation.ts';
import type { Operation } from '../../openapi/operation.ts';
import { LIST_NOTES, ListQueryFields } from '../../lists.ts';
import { CreateCustomerBody, customerDetails } from './schema.ts';

const EXAMPLE_DETAILS = {
  name: 'Ada Example',
  email: 'ada@example.com',
  contactNumber: '+441632960961',
  customerAddress: { country: 'GB', postalCode: 'SW1A 1AA' },
};

const CUSTOMER_ID = 'cus_0002sSOLtvYJpjM0P8rC2uQe';
const customerIdParam = { description: 'Id of a customer.', example: CUSTOMER_ID };

const Customer = z
  .object({ customerId: id('cus', 'customer'), customerDetails })
  .meta({ id: 'Customer' });

const PaymentMethodToken = z
  .object({
    paymentMethodId: id('pmt', 'saved payment method'),
    paymentMethod: paymentMethodKind,
    cardMetadata,
    customerId: id('cus', 'customer'),
    status: z.enum(['LIVE', 'DELETED']),
    createdAt: epochMs('When it was saved.'),
  })
  .meta({ id: 'PaymentMethodToken', ...EXTENSION });

const exampleCustomer = { customerId: CUSTOMER_ID, customerDetails: EXAMPLE_DETAILS };

export const customerOperations: readonly Operation[] = [
  {
    operationId: 'createCustomer',
    method: 'post',
    path: '/customer/create',
    tag: 'Customers',
    summary: 'Create a customer',
    description: 'Stores the details of a payer. A customer can have saved payment methods.',
    idempotencyKey: 'listed',
    body: bodyFields(CreateCustomerBody, { customerDetails: 'Details of the payer.' }, [
      { summary: 'A person', value: { customerDetails: EXAMPLE_DETAILS } },
    ]),
    answer: {
      description: 'The customer was created.',
      schema: z.object({ customerId: id('cus', 'customer') }),
      examples: [{ summary: 'Created', value: { customerId: CUSTOMER_ID } }],
    },
  },
  {
    operationId: 'getCustomer',
    method: 'get',
    path: '/customer/:customerId',
    tag: 'Customers',
    summary: 'Read a customer',
    description: 'The details are returned exactly as they were given.',
    params: { customerId: customerIdParam },
    answer: {
      description: 'The customer.',
      schema: Customer,
      examples: [{ summary: 'A person', value: exampleCustomer }],
    },
    refusals: ['resource_not_found'],
  },
  {
    operationId: 'listCustomers',
    method: 'get',
    path: '/customer',
    tag: 'Customers',
    summary: 'List customers',
    description: 'Newest first, in pages.',
    isExtension: true,
    query: queryFields(ListQueryFields, LIST_NOTES),
    answer: {
      description: 'A page of customers.',
      schema: page(Customer),
      examples: [{ summary: 'The last page', value: { data: [exampleCustomer], metadata: {} } }],
    },
  },
  {
    operationId: 'listPaymentMethodTokens',
    method: 'get',
    path: '/customer/:customerId/payment-method-tokens',
    tag: 'Customers',
    summary: 'List the saved payment methods of a customer',
    description:
      '`POST /payments/charge-tokenised-pm` takes `paymentMethodId` as `pmId`. A method with status ' +
      'DELETED cannot be charged.',
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
                paymentMethod: 'CARD',
                cardMetadata: {
                  brand: 'visa',
                  country: 'US',
                  lastFourDigit: '4242',
                  expiryMonth: 12,
                  expiryYear: 2030,
                },
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
  },
];
