import type { z } from 'zod';
import type { ErrorCode } from '../../domain/errors.ts';
import type { ApiDeps } from '../deps.ts';
import type { Fields, Problem, Shape } from './body.ts';
import type { KeyedCall } from './idempotency.ts';
import type { Answer, Merchant } from './request.ts';

export const TAGS = {
  Customers: 'Payers and their saved payment methods.',
  Subscriptions: 'Recurring payments: create, read, change.',
  Links: 'Shareable links that create subscriptions or payments.',
  Payments: 'Payment intents, charges outside a billing cycle, and refunds.',
  'Setup methods': 'Sessions in which a payer saves a payment method without a payment.',
  Declarations: 'What payers declared on your pages, and what they agreed to.',
  Events: 'Every event, also those that no endpoint received.',
  Webhooks: 'Configurations of the endpoints that events are sent to.',
  'Webhook events': 'The requests that your endpoints receive.',
  Settings: 'What the operator has set for a merchant.',
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
  /** Unknown fields are refused without the header `Unknown-Fields`, too: nothing is lost by it. */
  readonly refusesUnknown?: true;
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
  /** Default: 200. */
  readonly status?: 202;
}

type ParamOf<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamOf<`/${Rest}`>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never;

type NoFields = Readonly<Record<string, z.ZodNever>>;

export interface Call<
  Path extends string = string,
  Query extends Shape = Shape,
  Body extends Shape = Shape,
> extends KeyedCall {
  readonly merchant: Merchant;
  readonly params: Readonly<Record<ParamOf<Path>, string>>;
  readonly query: Fields<Query>;
  readonly body: Fields<Body>;
  /** Aborts when the connection of the request is closed. */
  readonly closed: () => AbortSignal;
}

/** The compiler checks the answers of `handle`, and the examples, against `answer.schema`. */
interface Declaration<
  Path extends string,
  Query extends Shape,
  Body extends Shape,
  Schema extends z.ZodType,
> extends Omit<Operation, 'path' | 'params' | 'query' | 'body' | 'answer' | 'isOpen'> {
  readonly path: Path;
  readonly params?: Readonly<Record<ParamOf<Path>, ParamNote>>;
  readonly query?: Query;
  readonly body?: RequestBody<Body> & {
    /** For other optional fields an empty string counts as absent. */
    readonly refusesEmpty?: readonly (keyof Body & string)[];
    /** Checks several fields together. Gets only the fields that are valid by themselves. */
    readonly problems?: (fields: Partial<Fields<Body>>, deps: ApiDeps) => Problem[];
  };
  readonly answer: OperationAnswer<Schema> | 'no content';
  readonly isTestOnly?: true;
  readonly isReadLimited?: true;
  /** Of a merchant's costly requests one runs at a time. By default a route with a `limit` is costly. */
  readonly isCostly?: boolean;
  /** Checks the fields against what the merchant's gateway accepts now. */
  readonly limits?: (
    call: Pick<Call<string, Query, Body>, 'merchant' | 'body'>,
    deps: ApiDeps,
  ) => Promise<Problem[]>;
  /** With an `idempotencyKey` it runs `writeOnce` or `executeOnce`. */
  readonly handle: (
    call: Call<NoInfer<Path>, Query, Body>,
    deps: ApiDeps,
  ) => Promise<Answer<z.input<Schema>>>;
}

/** A declaration without its types. */
export type Route = Omit<Declaration<string, Shape, Shape, z.ZodType>, 'params'> &
  Pick<Operation, 'params'>;

export function route<
  const Path extends string,
  Schema extends z.ZodType,
  Query extends Shape = NoFields,
  Body extends Shape = NoFields,
>(declaration: Declaration<Path, Query, Body, Schema>): Route {
  // The cast is safe, because the frame calls the functions of a route only with fields that its schemas accepted.
  return declaration as unknown as Route;
}
