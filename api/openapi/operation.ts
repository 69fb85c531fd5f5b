import type { z } from 'zod';
import type { ErrorCode } from '../../domain/errors.ts';

export const TAGS = {
  Customers: 'Payers and their saved payment methods.',
  Subscriptions: 'Recurring payments: create, read, change.',
  Links: 'Shareable links that create subscriptions.',
  Payments: 'Payment intents outside a billing cycle, and refunds.',
  'Setup methods': 'Sessions in which a payer saves a payment method without a payment.',
  Webhooks: 'Configurations of the endpoints that events are sent to.',
  'Test clocks': 'Advance the time of test subscriptions: a year in seconds.',
  Document: 'This document.',
} as const;

/** The description of a field. `isExtension`: the field is not part of interface 1.0.0. */
export interface FieldNote {
  readonly description: string;
  readonly isExtension: boolean;
}

type Shape = Readonly<Record<string, z.ZodType>>;
type Notes<S extends Shape> = { readonly [Name in keyof S]: string | FieldNote };

/** The fields of a request: their schemas and their descriptions. */
export interface RequestFields {
  readonly shape: Shape;
  readonly notes: Readonly<Record<string, FieldNote>>;
}

export interface Example {
  readonly summary: string;
  readonly value: unknown;
}

export interface RequestBody extends RequestFields {
  readonly examples: readonly Example[];
  /** False when the body may be absent. */
  readonly isRequired: boolean;
}

/**
 * Describes one route in the OpenAPI document. Every route that a merchant can call has one. A test
 * compares operations and routes in both directions. Rule: D-§7.
 */
export interface Operation {
  readonly operationId: string;
  readonly method: 'get' | 'post' | 'put' | 'delete';
  /** In the notation of the router: `/customer/:customerId`. */
  readonly path: string;
  readonly tag: keyof typeof TAGS;
  readonly summary: string;
  readonly description: string;
  /** Not part of interface 1.0.0. Rule: D-§7. */
  readonly isExtension?: true;
  /**
   * `listed`: interface 1.0.0 lists the header for this route. `honoured`: the header works although it
   * is not listed. Rules: IF-4, D-17.
   */
  readonly idempotencyKey?: 'listed' | 'honoured';
  /** Needs no credentials. Default: credentials are required. */
  readonly isOpen?: true;
  /** The answer has an `ETag`. A request with a matching `If-None-Match` gets 304. */
  readonly isCacheable?: true;
  readonly params?: Readonly<Record<string, ParamNote>>;
  readonly query?: RequestFields;
  readonly body?: RequestBody;
  readonly answer: OperationAnswer | 'no content';
  /** Error codes beyond those that every route of its kind may answer. */
  readonly refusals?: readonly ErrorCode[];
}

export interface ParamNote {
  readonly description: string;
  readonly example: string;
}

export interface OperationAnswer {
  readonly description: string;
  readonly schema: z.ZodType;
  readonly examples: readonly Example[];
}

/** Marks a field as an extension. */
export function extension(description: string): FieldNote {
  return { description, isExtension: true };
}

/** The query of a route: its schema, and a note for every field. */
export function queryFields<S extends Shape>(shape: S, notes: Notes<S>): RequestFields {
  return { shape, notes: completeNotes(notes) };
}

/** The body of a route: its schema, and a note for every field. */
export function bodyFields<S extends Shape>(
  shape: S,
  notes: Notes<S>,
  examples: readonly Example[],
  { isRequired = true }: { isRequired?: boolean } = {},
): RequestBody {
  return { ...queryFields(shape, notes), examples, isRequired };
}

function completeNotes(
  notes: Readonly<Record<string, string | FieldNote>>,
): Record<string, FieldNote> {
  return Object.fromEntries(
    Object.entries(notes).map(([name, note]) => [
      name,
      typeof note === 'string' ? { description: note, isExtension: false } : note,
    ]),
  );
}
