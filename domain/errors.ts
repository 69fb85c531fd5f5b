export interface ErrorEntry {
  readonly status: number;
  /** True if a repeat of the same request may succeed later. */
  readonly retryable: boolean;
  readonly message: string;
  /** The code in the answer, if another entry has it, too. */
  readonly shownAs?: string;
}

/** Every error code of the API, in the order of `docs/errors.md`. Decline codes are in `declines.ts`. */
export const ERRORS = {
  bad_request: { status: 400, retryable: false, message: 'The request is not valid.' },
  operation_not_allowed: {
    status: 400,
    retryable: false,
    message: 'The operation is not allowed in the present state of the resource.',
  },
  resource_not_found: { status: 400, retryable: false, message: 'The resource does not exist.' },
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
  read_only_credential: {
    status: 403,
    retryable: false,
    message: 'The credentials allow reading only.',
  },
  route_not_found: { status: 404, retryable: false, message: 'There is nothing at this address.' },
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
  endpoint_inactive: {
    status: 409,
    retryable: false,
    message: 'The endpoint is inactive. Reactivate it first, with PUT /webhook/{webhookConfigId}.',
    shownAs: 'operation_not_allowed',
  },
  cursor_expired: {
    status: 410,
    retryable: false,
    message: 'The feed cannot be read on from this cursor. Begin again without `after`.',
  },
  event_expired: {
    status: 410,
    retryable: false,
    message: 'The content of this event is deleted.',
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

export type ErrorCode = keyof typeof ERRORS;

/** The code as answers tell it. */
export function shownCode(code: ErrorCode): string {
  const { shownAs }: ErrorEntry = ERRORS[code];
  return shownAs ?? code;
}

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && Object.hasOwn(ERRORS, value);
}

/** The type of an activity's `ApplicationFailure` if a recorded subscription state has a wrong field. */
export const UNREADABLE_STATE = 'unreadable_state';

/** Why a command is refused. `retryAt`: when it would be accepted, if only the time is missing. */
export interface RefusalReason {
  readonly code: ErrorCode;
  readonly message: string;
  readonly retryAt?: number | undefined;
}

export interface DomainErrorOptions {
  /** The original error. The API logs it and never shows it in an answer. */
  readonly cause?: unknown;
  /** Whole seconds, for the answer's `Retry-After` header. */
  readonly retryAfterSeconds?: number;
  /** When the request would be accepted, for the answer's body. */
  readonly retryAt?: number | undefined;
}

/** Refuses a request. The caller reads `message`, the answer's `errorDescription`, so it must not name internals. */
export class DomainError extends Error {
  readonly code: ErrorCode;
  readonly retryAfterSeconds: number | undefined;
  readonly retryAt: number | undefined;

  constructor(code: ErrorCode, description?: string, options: DomainErrorOptions = {}) {
    super(
      description ?? ERRORS[code].message,
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.name = 'DomainError';
    this.code = code;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.retryAt = options.retryAt;
  }
}

/** Marks a branch that the types rule out. In a workflow, Temporal retries the failed task until the code is fixed. */
export function assertNever(value: never): never {
  throw new Error(`Unexpected value: ${String(value)}`);
}

/** For conditions that only a bug can break; a caller's mistake is a {@link DomainError}. */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`Invariant violated: ${message}`);
}
