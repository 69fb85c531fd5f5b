import { ERRORS, shownCode } from '../../domain/errors.ts';
import type { ErrorCode } from '../../domain/errors.ts';
import type { JsonSchema } from './json-schema.ts';
import { changesSomething } from '../http/route.ts';
import type { Operation } from '../http/route.ts';

const ALL_CODES = Object.keys(ERRORS) as ErrorCode[];

const COMMON_CODES: readonly ErrorCode[] = [
  'bad_request', // for example for an unknown query parameter
  'unauthorized',
  'read_only_credential', // of an operation that changes something
  'rate_limit_exceeded',
  'internal_server_error',
  'service_unavailable',
];

const IDEMPOTENCY_CODES: readonly ErrorCode[] = [
  'idempotency_key_in_use',
  'idempotency_key_reused',
];

const EXPIRED_CODES: readonly ErrorCode[] = ['cursor_expired', 'event_expired'];

const RETRY_AFTER_CODES: ReadonlySet<ErrorCode> = new Set([
  'idempotency_key_in_use',
  'rate_limit_exceeded',
]);

export function errorCodesOf(operation: Operation): ErrorCode[] {
  const { isOpen = false, idempotencyKey, refusals = [] } = operation;
  if (isOpen) return ['internal_server_error', 'service_unavailable'];
  const given = new Set<ErrorCode>([
    ...(idempotencyKey === undefined ? [] : IDEMPOTENCY_CODES),
    ...refusals,
    ...COMMON_CODES,
  ]);
  if (!changesSomething(operation)) given.delete('read_only_credential');
  return ALL_CODES.filter((code) => given.has(code));
}

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
      status !== 400 && codes.length === 1 && codes.join() in SHARED_RESPONSES
        ? { $ref: `#/components/responses/${codes.join()}` }
        : errorResponse(status, codes, isReplayed),
    ]),
  );
}

export const SHARED_RESPONSES: Readonly<Record<string, JsonSchema>> = Object.fromEntries(
  [...COMMON_CODES, ...IDEMPOTENCY_CODES, ...EXPIRED_CODES]
    .filter((code) => ERRORS[code].status !== 400)
    .map((code) => [code, errorResponse(ERRORS[code].status, [code], false)]),
);

function errorResponse(
  status: number,
  codes: readonly ErrorCode[],
  isReplayed: boolean,
): JsonSchema {
  return {
    description:
      status === 400
        ? 'The request is refused.'
        : codes.map((code) => ERRORS[code].message).join(' '),
    headers: headersOf(status, codes, isReplayed),
    content: {
      'application/json': {
        schema: { $ref: '#/components/schemas/Error' },
        examples: examplesOf(codes),
      },
    },
  };
}

function headersOf(status: number, codes: readonly ErrorCode[], isReplayed: boolean): JsonSchema {
  return {
    'Request-Id': header('Request-Id'),
    ...(isReplayed ? { 'Idempotent-Replayed': header('Idempotent-Replayed') } : {}),
    ...(codes.every((code) => RETRY_AFTER_CODES.has(code))
      ? { 'Retry-After': header('Retry-After') }
      : {}),
    ...(status === 401 ? { 'WWW-Authenticate': header('WWW-Authenticate') } : {}),
  };
}

export function header(name: keyof typeof HEADERS): JsonSchema {
  return { $ref: `#/components/headers/${name}` };
}

export const HEADERS = {
  'Request-Id': {
    description: 'Id of this request. Quote it when you report a problem.',
    required: true,
    schema: { type: 'string', pattern: '^req_[0-9A-Za-z]+$' },
  },
  'Idempotent-Replayed': {
    description:
      'Present when the answer is the stored answer of an earlier request with this Idempotency-Key.',
    schema: { type: 'string', enum: ['true'] },
  },
  'Ignored-Fields': {
    description:
      'The fields of the body that are not in this document, separated by commas. If the body was refused, only those of its first level.',
    schema: { type: 'string' },
  },
  'Retry-After': {
    description: 'Seconds to wait before the request is repeated.',
    required: true,
    schema: { type: 'string', pattern: '^[1-9][0-9]*$' },
  },
  ETag: {
    description: 'Version of the answer. Send it as `If-None-Match`.',
    required: true,
    schema: { type: 'string' },
  },
  'WWW-Authenticate': {
    description: 'How to authenticate.',
    required: true,
    schema: { type: 'string' },
  },
} as const;

/** One schema for all errors: a client handles errors in one place. The examples of an answer list its codes. */
export const ERROR_SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  ErrorCode: { type: 'string', enum: [...new Set(ALL_CODES.map(shownCode))] },
  Error: {
    type: 'object',
    required: ['errorCode', 'errorDescription'],
    properties: {
      errorCode: { $ref: '#/components/schemas/ErrorCode' },
      errorDescription: {
        type: 'string',
        description: 'Human-readable description of the problem.',
      },
      retryAt: {
        type: 'string',
        format: 'date-time',
        description:
          'Only for a manual retry within the cooldown: when the next one is possible. It equals the ' +
          '`minManualRetryDate` of the latest manual retry.',
        'x-extension': true,
      },
    },
  },
};

/** By error code. Every code that the operation answers with this status has an example. */
function examplesOf(codes: readonly ErrorCode[]): JsonSchema {
  return Object.fromEntries(
    codes.map((code) => [
      shownCode(code),
      {
        summary: ERRORS[code].retryable ? 'May succeed when repeated' : 'Do not repeat unchanged',
        value: { errorCode: shownCode(code), errorDescription: ERRORS[code].message },
      },
    ]),
  );
}
