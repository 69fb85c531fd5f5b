import type { z } from 'zod';
import type { ErrorCode } from '../../domain/errors.ts';
import type { Shape } from '../fields.ts';

export const TAGS = {
  Customers: 'Payers and their saved payment methods.',
  Subscriptions: 'Recurring payments: create, read, change.',
  Links: 'Shareable links that create subscriptions or payments.',
  Payments: 'Payment intents, charges outside a billing cycle, and refunds.',
  'Setup methods': 'Sessions in which a payer saves a payment method without a payment.',
  Webhooks: 'Configurations of the endpoints that events are sent to.',
  'Test clocks': 'Clocks that advance the time of test subscriptions: a year in seconds.',
  'Test helpers': 'Control of the sandbox gateway.',
  Document: 'This document.',
} as const;

/** Examples by their summary. The first one of a body is in the sample for curl. */
export type Examples<Value = unknown> = Readonly<Record<string, Value>>;

export interface RequestBody<Body extends Shape = Shape> {
  readonly fields: Body;
  readonly examples: Examples;
  /** The body may be absent. Then every field is absent. */
  readonly isOptional?: true;
}

/** A test checks that every route of merchants has an operation, and every operation a route. */
export interface Operation {
  readonly operationId: string;
  readonly method: 'get' | 'post' | 'put' | 'delete';
  /** In the notation of the router: `/customer/:customerId`. */
  readonly path: string;
  readonly tag: keyof typeof TAGS;
  readonly summary: string;
  readonly description: string;
  readonly isExtension?: true;
  /** `listed`: by interface 1.0.0. `honoured`: accepted, but not listed there. */
  readonly idempotencyKey?: 'listed' | 'honoured';
  readonly isOpen?: true;
  /** Credentials that allow reading only may call it, although its method is not GET. */
  readonly isReading?: true;
  /** Events are sent to the `endpoint` of the body. Only of one operation: generators name the callback once. */
  readonly sendsEvents?: true;
  /** The answer has an `ETag`. A request with a matching `If-None-Match` gets 304. */
  readonly isCacheable?: true;
  readonly params?: Readonly<Record<string, ParamNote>>;
  readonly query?: Shape;
  readonly body?: RequestBody;
  readonly answer: OperationAnswer | 'no content';
  readonly refusals?: readonly ErrorCode[];
}

export function changesSomething({ method, isReading }: Operation): boolean {
  return method !== 'get' && isReading !== true;
}

export interface ParamNote {
  readonly description: string;
  readonly example: string;
}

export interface OperationAnswer<Schema extends z.ZodType = z.ZodType> {
  readonly description: string;
  readonly schema: Schema;
  readonly examples: Examples<NoInfer<z.input<Schema>>>;
}
