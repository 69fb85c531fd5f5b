import { ERRORS } from '../../domain/errors.ts';
import type { ErrorCode } from '../../domain/errors.ts';
import type { JsonSchema } from './json-schema.ts';
import type { Operation } from './operation.ts';

/** What every route of a merchant may answer. Rules: D-20, D-22, D-§8. */
const OF_EVERY_MERCHANT: readonly ErrorCode[] = [
  'unauthorized',
  'rate_limit_exceeded',
  'internal_server_error',
  'service_unavailable',
];

/** Rule: D-17. */
const WITH_KEY: readonly ErrorCode[] = [
  'bad_request',
  'idempotency_key_in_use',
  'idempotency_key_reused',
];

const STATUS_DESCRIPTIONS: Readonly<Record<number, string>> = {
  400: 'The request is refused.',
  401: 'The credentials are missing or not valid.',
  409: 'A request with this Idempotency-Key is still being processed.',
  422: 'This Idempotency-Key was used with a different request.',
  429: 'Too many requests.',
  500: 'Something went wrong on our side.',
  503: 'The service is not available at the moment.',
};

const RETRY_AFTER = new Set([409, 429]);

/** Codes that an operation may be refused with. */
export function errorCodesOf(operation: Operation): ErrorCode[] {
  const { isOpen = false, idempotencyKey, body, query, refusals = [] } = operation;
  if (isOpen) return ['internal_server_error', 'service_unavailable'];
  const isRead = body !== undefined || query !== undefined;
  const given = new Set<ErrorCode>([
    ...(isRead ? (['bad_request'] as const) : []),
    ...(idempotencyKey === undefined ? [] : WITH_KEY),
    ...refusals,
    ...OF_EVERY_MERCHANT,
  ]);
  // In the order of the catalogue.
  return (Object.keys(ERRORS) as ErrorCode[]).filter((code) => given.has(code));
}

/** The error answers of an operation, by status; each lists the codes it may carry. */
export function errorResponses(operation: Operation): Record<string, JsonSchema> {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of errorCodesOf(operation)) {
    const { status } = ERRORS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const isReplayed = operation.idempotencyKey !== undefined;
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      String(status),
      status === 400
        ? errorResponse(status, codes, isReplayed)
        : { $ref: `#/components/responses/${codes.join('_')}` },
    ]),
  );
}

/** Error answers that are the same everywhere, by code. */
export const SHARED_RESPONSES: Readonly<Record<string, JsonSchema>> = Object.fromEntries(
  [...OF_EVERY_MERCHANT, ...WITH_KEY]
    .filter((code) => ERRORS[code].status !== 400)
    .map((code) => [code, errorResponse(ERRORS[code].status, [code], false)]),
);

function errorResponse(
  status: number,
  codes: readonly ErrorCode[],
  isReplayed: boolean,
): JsonSchema {
  return {
    description: STATUS_DESCRIPTIONS[status],
    headers: headersOf(status, isReplayed),
    content: { 'application/json': { schema: schemaOf(codes), examples: examplesOf(codes) } },
  };
}

function headersOf(status: number, isReplayed: boolean): JsonSchema {
  return {
    'Request-Id': header('Request-Id'),
    ...(isReplayed ? { 'Idempotent-Replayed': header('Idempotent-Replayed') } : {}),
    ...(RETRY_AFTER.has(status) ? { 'Retry-After': header('Retry-After') } : {}),
    ...(status === 401 ? { 'WWW-Authenticate': header('WWW-Authenticate') } : {}),
  };
}

export function header(name: keyof typeof HEADERS): JsonSchema {
  return { $ref: `#/components/headers/${name}` };
}

/** Rules: D-17, D-20, D-22, D-§8. */
export const HEADERS = {
  'Request-Id': {
    description: 'Names this request. Quote it when you ask about it.',
    required: true,
    schema: { type: 'string', pattern: '^req_[0-9A-Za-z]+$' },
  },
  'Idempotent-Replayed': {
    description: 'The stored answer of an earlier request with this Idempotency-Key.',
    schema: { type: 'string', const: 'true' },
  },
  'Retry-After': {
    description: 'Seconds to wait before the request is repeated.',
    required: true,
    schema: { type: 'string', pattern: '^[1-9][0-9]*$' },
  },
  ETag: {
    description: 'Names this version; send it as `If-None-Match`.',
    required: true,
    schema: { type: 'string' },
  },
  'WWW-Authenticate': {
    description: 'How to authenticate.',
    required: true,
    schema: { type: 'string' },
  },
} as const;

function schemaOf(codes: readonly ErrorCode[]): JsonSchema {
  return {
    type: 'object',
    required: ['errorCode', 'errorDescription'],
    properties: {
      errorCode: { type: 'string', enum: codes },
      errorDescription: { type: 'string', description: 'What was wrong, for people.' },
    },
  };
}

function examplesOf(codes: readonly ErrorCode[]): JsonSchema {
  return Object.fromEntries(
    codes.map((code) => [
      code,
      {
        summary: ERRORS[code].retryable ? 'May succeed when repeated' : 'Do not repeat unchanged',
        value: { errorCode: code, errorDescription: ERRORS[code].message },
      },
    ]),
  );
}
