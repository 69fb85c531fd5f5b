import { z } from 'zod';
import { SETUP_METHOD_STATUSES } from '../../../domain/setup-method.ts';
import {
  currencyCode,
  EXTENSION,
  id,
  pairs,
  paymentMethodKind,
  url,
} from '../../openapi/answer-fields.ts';
import { bodyFields } from '../../openapi/operation.ts';
import type { Operation } from '../../openapi/operation.ts';
import { CreateSetupMethodShape } from './schema.ts';

/** Rules: IF-2.5, D-§7. */
const SetupMethod = z
  .object({
    setupMethodId: id('sm', 'setup session'),
    customerId: id('cus', 'customer'),
    currency: currencyCode,
    paymentMethods: z.array(paymentMethodKind),
    storeFrontId: z.string().optional(),
    callbackUrl: url('Where the payer’s browser goes afterwards.'),
    metadata: pairs.optional(),
    status: z.enum(SETUP_METHOD_STATUSES).meta({
      description: 'FAILED: the session has no tries left. CANCELLED: the session expired.',
    }),
    pmId: id('pmt', 'saved payment method').optional(),
  })
  .meta({ id: 'SetupMethod', ...EXTENSION });

const SETUP_METHOD_ID = 'sm_0002sSOLuS8nM4vBcX2zLkJh';

const exampleBody = {
  currency: 'USD',
  billingDetails: { name: 'Ada Example', email: 'ada@example.com' },
  callbackUrl: 'https://merchant.example/saved',
};

export const setupMethodOperations: readonly Operation[] = [
  {
    operationId: 'createSetupMethod',
    method: 'post',
    path: '/setup-method/create',
    tag: 'Setup methods',
    summary: 'Let a payer save a payment method',
    description: 'Send the payer to `fwdUrl`. Nothing is charged.',
    idempotencyKey: 'listed',
    body: bodyFields(
      CreateSetupMethodShape,
      {
        currency: 'Three-letter ISO 4217 code.',
        billingDetails: 'The payer. The page asks for a missing name or e-mail address.',
        callbackUrl:
          'Where the payer’s browser goes afterwards, with `setup_method_id`, `pm_id`, `customer_id` ' +
          'and `status` added. The parameters are unsigned.',
        paymentMethods:
          'Payment methods that may be saved. An unavailable method falls back to CARD.',
        customerId:
          'Id of an existing customer. Without it a customer is created from the details.',
        storeFrontId: 'Stored with the session. Not checked.',
        metadata: 'Your own key-value pairs.',
        phoneNumberRequired: 'Whether the page asks for a telephone number. Default: false.',
      },
      [{ summary: 'A card', value: exampleBody }],
    ),
    answer: {
      description: 'The setup session was created.',
      schema: z.object({
        setupMethodId: id('sm', 'setup session'),
        fwdUrl: url('Where to send the payer.'),
      }),
      examples: [
        {
          summary: 'Created',
          value: {
            setupMethodId: SETUP_METHOD_ID,
            fwdUrl: 'https://pay.example/setup/mYt0kEn',
          },
        },
      ],
    },
    refusals: ['resource_not_found'],
  },
  {
    operationId: 'getSetupMethod',
    method: 'get',
    path: '/setup-method/:setupMethodId',
    tag: 'Setup methods',
    summary: 'Read a setup session',
    description: 'Shows whether a payment method was saved, and its id.',
    isExtension: true,
    params: { setupMethodId: { description: 'Id of a setup session.', example: SETUP_METHOD_ID } },
    answer: {
      description: 'The session.',
      schema: SetupMethod,
      examples: [
        {
          summary: 'Saved',
          value: {
            setupMethodId: SETUP_METHOD_ID,
            customerId: 'cus_0002sSOLtvYJpjM0P8rC2uQe',
            currency: 'USD',
            paymentMethods: ['CARD'],
            callbackUrl: exampleBody.callbackUrl,
            status: 'SUCCESS',
            pmId: 'pmt_0002sSOLuP0oT4bXWmA1nLdK',
          },
        },
      ],
    },
    refusals: ['resource_not_found'],
  },
];
