import { expect } from 'vitest';
import type { Answer } from './api-environment.ts';

/** Expects a refusal with exactly this code and text. */
export function expectError(
  { status, json }: Answer,
  expectedStatus: number,
  errorCode: string,
  errorDescription: string,
): void {
  expect([status, json]).toEqual([expectedStatus, { errorCode, errorDescription }]);
}
