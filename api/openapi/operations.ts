import { z } from 'zod';
import { customerOperations } from '../routes/customers/operations.ts';
import { linkOperations } from '../routes/links/operations.ts';
import { paymentOperations } from '../routes/payments/operations.ts';
import { setupMethodOperations } from '../routes/setup-methods/operations.ts';
import { subscriptionOperations } from '../routes/subscriptions/operations.ts';
import { testClockOperations } from '../routes/test-clocks/operations.ts';
import { webhookOperations } from '../routes/webhooks/operations.ts';
import type { Operation } from './operation.ts';

/** Rule: D-§7. */
const getDocument: Operation = {
  operationId: 'getDocument',
  method: 'get',
  path: '/openapi.json',
  tag: 'Document',
  summary: 'Read this document',
  description: 'OpenAPI 3.1. `/docs` shows the document as a web page.',
  isExtension: true,
  isOpen: true,
  isCacheable: true,
  answer: {
    description: 'The document.',
    schema: z.looseObject({ openapi: z.literal('3.1.0') }),
    examples: [{ summary: 'The beginning', value: { openapi: '3.1.0' } }],
  },
};

/** Every operation, in the order of the document. */
export const OPERATIONS: readonly Operation[] = [
  ...customerOperations,
  ...subscriptionOperations,
  ...linkOperations,
  ...paymentOperations,
  ...setupMethodOperations,
  ...webhookOperations,
  ...testClockOperations,
  getDocument,
];
