import { expect } from 'vitest';
import type { Answer } from './api-environment.ts';

/** Expects that an answer has this status, and that its body is exactly this error code and description. */
export function expectError(
  { status, json }: Answer,
  expectedStatus: number,
  errorCode: string,
  errorDescription: string,
): void {
  expect([status, json]).toEqual([expectedStatus, { errorCode, errorDescription }]);
}
