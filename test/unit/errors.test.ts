import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { assertNever, DomainError, ERRORS, invariant, isErrorCode } from '../../domain/errors.ts';

interface DocumentedError {
  code: string;
  status: number;
  retryable: boolean;
  message: string;
}

function documentedErrors(): DocumentedError[] {
  const text = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8');
  const rows = text.split('\n').filter((line) => line.startsWith('|'));
  // The first two rows are the head of the table and the line under it.
  return rows.slice(2).map((row) => {
    const [code = '', status, repeat, message = ''] = row.slice(1, -1).split('|');
    return {
      code: code.trim().replaceAll('`', ''),
      status: Number(status),
      retryable: repeat?.trim() === 'yes',
      message: message.trim(),
    };
  });
}

describe('error catalogue', () => {
  it('is exactly the list of codes with their statuses [D-§8]', () => {
    expect(Object.entries(ERRORS).map(([code, entry]) => `${code} ${entry.status}`)).toEqual([
      'bad_request 400',
      'operation_not_allowed 400',
      'resource_not_found 400',
      'payment_outcome_pending 400',
      'unauthorized 401',
      'route_not_found 404',
      'method_not_allowed 405',
      'idempotency_key_in_use 409',
      'idempotency_key_reused 422',
      'rate_limit_exceeded 429',
      'internal_server_error 500',
      'service_unavailable 503',
    ]);
  });

  it('lets a request be repeated where its answer is not stored and may change [D-17]', () => {
    const retryable = Object.entries(ERRORS).filter(([, entry]) => entry.retryable);
    expect(retryable.map(([code]) => code)).toEqual([
      'payment_outcome_pending',
      'idempotency_key_in_use',
      'rate_limit_exceeded',
      'internal_server_error',
      'service_unavailable',
    ]);
  });

  it('is documented code for code, with the same status, repeat and text [D-§8]', () => {
    const catalogue = Object.entries(ERRORS).map(([code, entry]) => ({ code, ...entry }));
    expect(documentedErrors()).toEqual(catalogue);
  });

  it('knows its own codes and nothing that only looks like one [D-§8]', () => {
    expect(isErrorCode('bad_request')).toBe(true);
    expect(isErrorCode('card_declined')).toBe(false);
    expect(isErrorCode('toString')).toBe(false);
    expect(isErrorCode(undefined)).toBe(false);
  });
});

describe('DomainError', () => {
  it('describes itself with the text of its code when given none [D-§8]', () => {
    const error = new DomainError('resource_not_found');
    expect(error).toBeInstanceOf(Error);
    expect(error.name).toBe('DomainError');
    expect(error.code).toBe('resource_not_found');
    expect(error.message).toBe('The resource does not exist.');
    expect(error.retryAfterSeconds).toBeUndefined();
    expect(Object.hasOwn(error, 'cause')).toBe(false);
  });

  it('carries its description, its cause and the seconds to wait [D-§8]', () => {
    const cause = new Error('lease held');
    const error = new DomainError('idempotency_key_in_use', 'Wait a moment.', {
      cause,
      retryAfterSeconds: 2,
    });
    expect(error.message).toBe('Wait a moment.');
    expect(error.cause).toBe(cause);
    expect(error.retryAfterSeconds).toBe(2);
  });
});

describe('bugs', () => {
  it('are plain errors, never a DomainError that a caller would be told about [D-§8]', () => {
    const bugs = [() => assertNever('PAUSED' as never), () => invariant(false, 'cycle is owed')];
    const thrown = bugs.map((bug) => {
      try {
        bug();
        return undefined;
      } catch (error) {
        return error;
      }
    });
    expect(thrown).toEqual([
      new Error('Unexpected value: PAUSED'),
      new Error('Invariant violated: cycle is owed'),
    ]);
    expect(thrown.some((error) => error instanceof DomainError)).toBe(false);
  });

  it('are not raised for a condition that holds [D-§8]', () => {
    expect(() => invariant(true, 'never said')).not.toThrow();
  });
});
