/** What the catalogue says of one error code. */
export interface ErrorEntry {
  /** HTTP status of the answer. */
  readonly status: number;
  /** True when the same request, sent again unchanged, may succeed later. */
  readonly retryable: boolean;
  /** The description used when the place that refuses has nothing more exact to say. */
  readonly message: string;
}

/**
 * Every error code an API answer can carry, in the order of `docs/errors.md`. Payment decline codes
 * are not here: a decline is the outcome of a charge, not an error of a request.
 *
 * Rule: D-§8.
 */
export const ERRORS = {
  bad_request: {
    status: 400,
    retryable: false,
    message: 'The request is not valid.',
  },
  operation_not_allowed: {
    status: 400,
    retryable: false,
    message: 'The operation is not allowed in the present state of the resource.',
  },
  resource_not_found: {
    status: 400,
    retryable: false,
    message: 'The resource does not exist.',
  },
  payment_outcome_pending: {
    status: 400,
    retryable: true,
    message: 'The outcome of a payment is not known yet. Try again shortly.',
  },
  unauthorized: {
    status: 401,
    retryable: false,
    message: 'The credentials are missing or not valid.',
  },
  route_not_found: {
    status: 404,
    retryable: false,
    message: 'There is nothing at this address.',
  },
  method_not_allowed: {
    status: 405,
    retryable: false,
    message: 'This address does not serve this method.',
  },
  idempotency_key_in_use: {
    status: 409,
    retryable: true,
    message: 'A request with this Idempotency-Key is still being processed. Try again shortly.',
  },
  idempotency_key_reused: {
    status: 422,
    retryable: false,
    message: 'This Idempotency-Key was used before with a different request.',
  },
  rate_limit_exceeded: {
    status: 429,
    retryable: true,
    message: 'Too many requests. Wait before trying again.',
  },
  internal_server_error: {
    status: 500,
    retryable: true,
    message: 'Something went wrong on our side. Quote the Request-Id when you report it.',
  },
  service_unavailable: {
    status: 503,
    retryable: true,
    message: 'The service is not available at the moment. It is safe to repeat with the same key.',
  },
} as const satisfies Record<string, ErrorEntry>;

/** A code of the catalogue: the `errorCode` of every error answer. */
export type ErrorCode = keyof typeof ERRORS;

/** True when the value is a code of the catalogue; inherited property names are not. */
export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && Object.hasOwn(ERRORS, value);
}

/** What a {@link DomainError} may carry besides its code and description. */
export interface DomainErrorOptions {
  /** The error that led to this one; for logs, never for an answer. */
  readonly cause?: unknown;
  /** Whole seconds after which trying again makes sense. */
  readonly retryAfterSeconds?: number;
}

/**
 * A request refused for a reason the caller is told: `message` is the `errorDescription` of the
 * answer, so it holds nothing that only we may know.
 *
 * Rule: D-§8.
 */
export class DomainError extends Error {
  readonly code: ErrorCode;
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ErrorCode, description?: string, options: DomainErrorOptions = {}) {
    super(
      description ?? ERRORS[code].message,
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.name = 'DomainError';
    this.code = code;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/**
 * Marks a branch the types rule out. Reached at run time it throws a plain `Error`: a bug, which in
 * a workflow fails the task and is retried until the code is fixed.
 */
export function assertNever(value: never): never {
  throw new Error(`Unexpected value: ${String(value)}`);
}

/**
 * Throws a plain `Error` unless the condition holds. For what can only be false through a bug; what
 * a caller can get wrong is a {@link DomainError}.
 */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`Invariant violated: ${message}`);
}
