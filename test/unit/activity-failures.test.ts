import { ApplicationFailure } from '@temporalio/common';
import { DrizzleQueryError } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { invalidInput, withoutQueryData } from '../../activities/failures.ts';

const deadlock = Object.assign(new Error('deadlock, Ada Example'), { code: '40P01' });

const activities = withoutQueryData({
  works: async (input: { n: number }) => input.n + 1,
  isRefused: async () => Promise.reject(invalidInput('no')),
  meetsTheDatabase: async () =>
    Promise.reject(new DrizzleQueryError('insert', ['ada@example.com'], deadlock)),
});

test('an activity’s failure after a database error contains no query and no parameters', async () => {
  const failure = await activities.meetsTheDatabase().catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ApplicationFailure);
  expect(failure).toMatchObject({
    type: 'database_error',
    message: 'database error 40P01',
    nonRetryable: false,
  });
  expect(JSON.stringify(failure, Object.getOwnPropertyNames(failure))).not.toMatch(/ada/i);
});

test('the result of an activity and a failure that it throws itself are passed on unchanged', async () => {
  expect(await activities.works({ n: 1 })).toBe(2);
  await expect(activities.isRefused()).rejects.toThrow(invalidInput('no'));
});
