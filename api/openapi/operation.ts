import type { z } from 'zod';
import type { ErrorCode } from '../../domain/errors.ts';

export const TAGS = {
  Customers: 'Payers, and the payment methods they saved.',
  Subscriptions: 'Recurring payments: create, read, change.',
  Links: 'Shareable links that subscriptions come of.',
  Payments: 'Payment intents outside a billing cycle, and refunds.',
  'Setup methods': 'Saving a payment method with nothing to pay.',
  Webhooks: 'Where events are sent.',
  'Test clocks': 'A year in seconds, with test credentials.',
  Document: 'This document.',
} as const;

/** What a person reads of a field; `isExtension` marks those that interface.md does not have. */
export interface FieldNote {
  readonly description: string;
  readonly isExtension: boolean;
}

type Shape = Readonly<Record<string, z.ZodType>>;
type Notes<S extends Shape> = { readonly [Name in keyof S]: string | FieldNote };

/** The fields of a request: what validates them, and what is said of each. */
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
  /** False where a request without a body is right, too. */
  readonly isRequired: boolean;
}

/**
 * One route as the interface document tells of it. Every route a merchant can call has one, beside
 * the router that serves it; a test compares both directions. Rule: D-§7.
 */
export interface Operation {
  readonly operationId: string;
  readonly method: 'get' | 'post' | 'put' | 'delete';
  /** As its router has it: `/customer/:customerId`. */
  readonly path: string;
  readonly tag: keyof typeof TAGS;
  readonly summary: string;
  readonly description: string;
  /** Not in interface.md. Rule: D-§7. */
  readonly isExtension?: true;
  /** `listed`: interface.md names the header; `honoured`: it works all the same. Rules: IF-4, D-17. */
  readonly idempotencyKey?: 'listed' | 'honoured';
  /** Answers anybody; default: only merchants. */
  readonly isOpen?: true;
  /** Has an `ETag`, and is not sent again to who has it. */
  readonly isCacheable?: true;
  readonly params?: Readonly<Record<string, ParamNote>>;
  readonly query?: RequestFields;
  readonly body?: RequestBody;
  readonly answer: OperationAnswer | 'no content';
  /** Beyond what every route of its kind may answer. */
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

/** The query of a route: every field of the shape that reads it, with a note. */
export function queryFields<S extends Shape>(shape: S, notes: Notes<S>): RequestFields {
  return { shape, notes: completeNotes(notes) };
}

/** The body of a route: every field of the shape that validates it, with a note. */
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
