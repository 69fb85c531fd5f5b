import { z } from 'zod';
import {
  findSetupMethod,
  insertSetupMethod,
} from '../../../db/repositories/setup-methods/sessions.ts';
import type { SetupMethod } from '../../../db/repositories/setup-methods/sessions.ts';
import { newId, randomToken } from '../../../domain/ids.ts';
import { offeredMethods } from '../../../domain/payment-method.ts';
import { SETUP_METHOD_STATUSES, setupMethodStatusAt } from '../../../domain/setup-method.ts';
import {
  currencyCode,
  EXTENSION,
  id,
  pairs,
  paymentMethodKind,
  unavailablePaymentMethods,
  url,
} from '../../answer-fields.ts';
import { found, ok, withoutNulls } from '../../http/request.ts';
import {
  currency,
  currencyProblems,
  customerDetails,
  gatewayAmountProblems,
  httpUrl,
  knownCustomerId,
  locale,
  optional,
  ownPairs,
  PAYER,
  paymentMethods,
  phoneNumberRequired,
  storeFrontId,
} from '../../fields.ts';
import { writeOnce } from '../../http/idempotency.ts';
import { setupMethodPath } from '../../../runtime/payer-links.ts';
import { payerOf } from '../subscriptions/create.ts';
import { route } from '../../http/route.ts';

const SETUP_METHOD_ID = 'sm_0002sSOLuS8nM4vBcX2zLkJh';

const exampleBody = {
  currency: 'USD',
  billingDetails: { name: 'Ada Example', email: 'ada@example.com' },
  callbackUrl: 'https://merchant.example/saved',
};

export const createSetupMethod = route({
  operationId: 'createSetupMethod',
  method: 'post',
  path: '/setup-method/create',
  tag: 'Setup methods',
  summary: 'Let a payer save a payment method',
  description: 'Send the payer to `fwdUrl`. Nothing is charged.',
  idempotencyKey: 'listed',
  body: {
    fields: {
      currency,
      billingDetails: customerDetails.describe(PAYER),
      callbackUrl: httpUrl().describe(
        'Where the payer’s browser goes afterwards, with `setup_method_id`, `pm_id`, `customer_id` ' +
          'and `status` added. The parameters are unsigned.',
      ),
      paymentMethods: optional(paymentMethods).describe(
        'Payment methods that may be saved. An unavailable method falls back to CARD.',
      ),
      customerId: knownCustomerId,
      storeFrontId,
      metadata: ownPairs,
      phoneNumberRequired,
      locale,
    },
    problems: currencyProblems,
    examples: { 'A card': exampleBody },
  },
  answer: {
    description: 'The setup session was created.',
    schema: z.object({
      setupMethodId: id('sm', 'setup session'),
      fwdUrl: url('Where to send the payer.'),
      unavailablePaymentMethods,
    }),
    examples: {
      Created: { setupMethodId: SETUP_METHOD_ID, fwdUrl: 'https://pay.example/setup/mYt0kEn' },
    },
  },
  refusals: ['operation_not_allowed', 'resource_not_found'],
  // A live merchant without a gateway is refused.
  limits: ({ merchant, body }, deps) => gatewayAmountProblems(deps, merchant.id, {}, body.currency),
  handle: async (call, deps) => {
    return writeOnce(call, deps, async (tx) => {
      const { billingDetails, customerId, paymentMethods: wanted, ...order } = call.body;
      const { offered, unavailable } = offeredMethods(wanted ?? [], order.currency);
      const merchantId = call.merchant.id;
      const createdAt = deps.now();
      const setupMethodId = newId('sm', createdAt, deps.random);
      const token = randomToken(deps.random);
      await insertSetupMethod(
        tx,
        {
          merchantId,
          setupMethodId,
          customerId: await payerOf(tx, deps, merchantId, { customerId, details: billingDetails }),
          paymentMethods: offered,
          billingDetails,
          ...order,
          createdAt,
          expiresAt: createdAt + deps.checkoutExpiryMs,
        },
        { id: newId('cs', createdAt, deps.random), token },
      );
      const fwdUrl = `${deps.publicUrl}${setupMethodPath(token)}`;
      const leftOut = unavailable.length === 0 ? {} : { unavailablePaymentMethods: unavailable };
      return { answer: ok({ setupMethodId, fwdUrl, ...leftOut }) };
    });
  },
});

const SetupMethodAnswer = z
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

function presentSetupMethod(session: SetupMethod, nowAt: number) {
  return {
    setupMethodId: session.id,
    customerId: session.customerId,
    currency: session.currency,
    paymentMethods: session.paymentMethods,
    ...withoutNulls({ storeFrontId: session.storeFrontId }),
    callbackUrl: session.callbackUrl,
    ...withoutNulls({ metadata: session.metadata }),
    status: setupMethodStatusAt(session, nowAt),
    ...withoutNulls({ pmId: session.paymentMethodId }),
  };
}

export const getSetupMethod = route({
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
    schema: SetupMethodAnswer,
    examples: {
      Saved: {
        setupMethodId: SETUP_METHOD_ID,
        customerId: 'cus_0002sSOLtvYJpjM0P8rC2uQe',
        currency: 'USD',
        paymentMethods: ['CARD'],
        callbackUrl: exampleBody.callbackUrl,
        status: 'SUCCESS',
        pmId: 'pmt_0002sSOLuP0oT4bXWmA1nLdK',
      },
    },
  },
  refusals: ['resource_not_found'],
  handle: async ({ merchant, params }, { db, now }) => {
    const session = found(
      await findSetupMethod(db, merchant.id, params.setupMethodId),
      'setup method',
    );
    return ok(presentSetupMethod(session, now()));
  },
});
