import {
  createCustomer,
  deletePaymentMethodToken,
  getCustomer,
  getCustomers,
  getCustomerState,
  getPaymentMethodTokens,
  updateCustomerDetails,
} from './routes/customers/routes.ts';
import { readDocument } from './routes/documents/routes.ts';
import type { Operation, Route } from './http/route.ts';
import { getEvent, getEvents } from './routes/events/routes.ts';
import { generateLink, generatePaymentLink } from './routes/links/routes.ts';
import { cancelIntent } from './routes/payments/cancel.ts';
import { chargeSubscriptionOnce, chargeTokenised } from './routes/payments/charge.ts';
import { createIntent } from './routes/payments/create-intent.ts';
import { getIntent, getIntents, getIntentV1 } from './routes/payments/intent.ts';
import { createRefund } from './routes/payments/refund.ts';
import { getRefunds } from './routes/payments/refunds.ts';
import { createSetupMethod, getSetupMethod } from './routes/setup-methods/routes.ts';
import {
  cancelSubscription,
  editSubscription,
  pauseSubscription,
  resumeSubscription,
  retrySubscription,
  unpauseSubscription,
} from './routes/subscriptions/commands.ts';
import { getCharges, getTimeline } from './routes/subscriptions/charges.ts';
import { createSubscription } from './routes/subscriptions/create.ts';
import {
  getSubscription,
  getSubscriptions,
  getUpcomingCharges,
} from './routes/subscriptions/read.ts';
import { simulateSubscription } from './routes/subscriptions/simulate.ts';
import { advanceTestClock, createTestClock, getTestClock } from './routes/test-clocks/routes.ts';
import { declineNext } from './routes/test-helpers/routes.ts';
import {
  createWebhook,
  deleteWebhook,
  getWebhooks,
  updateWebhook,
} from './routes/webhooks/routes.ts';

/** In the order of the OpenAPI document. */
export const ROUTES: readonly Route[] = [
  createCustomer,
  getCustomer,
  updateCustomerDetails,
  getCustomers,
  getPaymentMethodTokens,
  deletePaymentMethodToken,
  getCustomerState,
  createSubscription,
  getSubscription,
  getSubscriptions,
  getUpcomingCharges,
  getCharges,
  getTimeline,
  simulateSubscription,
  editSubscription,
  cancelSubscription,
  pauseSubscription,
  resumeSubscription,
  unpauseSubscription,
  retrySubscription,
  generateLink,
  generatePaymentLink,
  chargeSubscriptionOnce,
  chargeTokenised,
  createIntent,
  getIntent,
  getIntentV1,
  getIntents,
  cancelIntent,
  createRefund,
  getRefunds,
  createSetupMethod,
  getSetupMethod,
  getEvents,
  getEvent,
  createWebhook,
  getWebhooks,
  updateWebhook,
  deleteWebhook,
  createTestClock,
  advanceTestClock,
  getTestClock,
  declineNext,
];

export const OPERATIONS: readonly Operation[] = [...ROUTES, readDocument];
