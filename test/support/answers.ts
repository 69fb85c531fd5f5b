import { expect } from 'vitest';
import type { Answer } from './api-environment.ts';

/**
 * Repeats a request while its answer is 503, as a caller does. On a busy machine, one of many parallel requests may get
 * a lock too late, after 5 s, or its outcome, after 35 s.
 */
export async function untilAvailable(send: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await send();
    if (answer.status !== 503) return answer;
  }
}

/** Expects that an answer has this status, and that its body is exactly this error code and description. */
export function expectError(
  { status, json }: Answer,
  expectedStatus: number,
  errorCode: string,
  errorDescription: string,
): void {
  expect([status, json]).toEqual([expectedStatus, { errorCode, errorDescription }]);
}
