import { STOPPING_ADVICE } from '../../domain/declines.ts';
import type { StatedAdvice } from '../../domain/declines.ts';

/** Null for a value that is no advice. */
export function readAdvice(value: unknown): StatedAdvice | null {
  if (typeof value !== 'object' || value === null) return null;
  const { kind, waitMs } = value as Partial<Record<'kind' | 'waitMs', unknown>>;
  if (kind === 'not_before') {
    return typeof waitMs === 'number' && Number.isSafeInteger(waitMs) && waitMs > 0
      ? { kind, waitMs }
      : null;
  }
  const stops = STOPPING_ADVICE.find((each) => each === kind);
  return stops === undefined ? null : { kind: stops };
}
