import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ERROR_SCHEMAS } from '../../api/openapi/errors.ts';
import { DECLINES, stopsAutomaticRetries } from '../../domain/declines.ts';
import type { ErrorEntry } from '../../domain/errors.ts';
import { assertNever, DomainError, ERRORS, invariant, isErrorCode } from '../../domain/errors.ts';

interface DocumentedError {
  code: string;
  status: number;
  retryable: boolean;
  message: string;
}

const DOCUMENT = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8');

const retryRows = (retried: readonly string[], stopped: readonly string[]): string => {
  const row = (name: string, codes: readonly string[]) =>
    `|${name}|${codes.map((code) => `\`${code}\``).join(', ')}|\n`;
  return row('by the plan', retried) + row('after new details', stopped);
};

function documentedErrors(): DocumentedError[] {
  const rows = DOCUMENT.split('\n').filter((line) => /^\| (errorCode|-|`)/.test(line));
  // The first two rows are the table header and the line below it.
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
  it('has exactly these codes with these statuses, and marks an error as retryable when its answer is not stored and may change [D-§8, IF-7, D-17]', () => {
    const listed = Object.entries(ERRORS).map(
      ([code, { status, retryable }]) => `${code} ${status}${retryable ? ' retryable' : ''}`,
    );
    expect(listed).toEqual([
      'bad_request 400',
      'operation_not_allowed 400',
      'resource_not_found 400',
      'payment_outcome_pending 400 retryable',
      'unauthorized 401',
      'read_only_credential 403',
      'route_not_found 404',
      'method_not_allowed 405',
      'idempotency_key_in_use 409 retryable',
      'endpoint_inactive 409',
      'cursor_expired 410',
      'event_expired 410',
      'idempotency_key_reused 422',
      'rate_limit_exceeded 429 retryable',
      'internal_server_error 500 retryable',
      'service_unavailable 503 retryable',
    ]);
  });

  it('equals the table of docs/errors.md in code, status, retryability and text [D-§8]', () => {
    const catalogue = Object.entries<ErrorEntry>(ERRORS).map(([code, { shownAs, ...entry }]) => ({
      code: shownAs ?? code,
      ...entry,
    }));
    expect(documentedErrors()).toEqual(catalogue);
  });

  it('has in docs/errors.md each decline code once, by whether the retry plan follows it [D-42, D-30]', () => {
    const codes = Object.keys(DECLINES);
    expect(DOCUMENT).toContain(
      retryRows(
        codes.filter((code) => !stopsAutomaticRetries(code)),
        codes.filter((code) => stopsAutomaticRetries(code)),
      ),
    );
  });

  it('has in docs/errors.md every field of an error answer [D-§8, D-31]', () => {
    const fields = Object.keys(ERROR_SCHEMAS['Error']?.['properties'] ?? {});
    expect(fields).toContain('retryAt');
    expect(fields.filter((field) => !DOCUMENT.includes(`\`${field}\``))).toEqual([]);
  });

  it('recognises exactly its own codes [D-§8]', () => {
    expect(isErrorCode('bad_request')).toBe(true);
    expect(isErrorCode('card_declined')).toBe(false);
    expect(isErrorCode('toString')).toBe(false);
    expect(isErrorCode(undefined)).toBe(false);
  });
});

describe('DomainError', () => {
  it('has the text of its code as its message when no text is given [D-§8]', () => {
    const error = new DomainError('resource_not_found');
    expect(error).toBeInstanceOf(Error);
    expect(error.name).toBe('DomainError');
    expect(error.code).toBe('resource_not_found');
    expect(error.message).toBe('The resource does not exist.');
    expect(error.retryAfterSeconds).toBeUndefined();
    expect(Object.hasOwn(error, 'cause')).toBe(false);
  });

  it('carries its description, its cause and the seconds until a retry [D-§8]', () => {
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

describe('the errors that a bug causes', () => {
  it('are plain errors, never a DomainError, whose text the API would send to the caller [D-§8]', () => {
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

  it('are not thrown for a condition that is true [D-§8]', () => {
    expect(() => invariant(true, 'never said')).not.toThrow();
  });
});
