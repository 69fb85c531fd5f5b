import { ServiceError } from '@temporalio/client';
import { expect, test } from 'vitest';
import { causesOf } from '../../api/http/every-request.ts';

test('the logged causes of an error have the status of gRPC and the code of a database error, and no message', () => {
  const refused = Object.assign(new Error('for customer ada@example.com'), { code: 9 });
  const unique = Object.assign(new Error('(email)=(ada@example.com)'), { code: '23505' });
  expect(causesOf(new ServiceError('Workflow Update failed', { cause: refused }))).toEqual([
    'ServiceError',
    'Error 9',
  ]);
  expect(causesOf(new Error('insert failed', { cause: unique }))).toEqual(['Error', 'Error 23505']);
  expect(causesOf('no error')).toEqual([]);
});
