import { z } from 'zod';
import { isInstant } from '../../../domain/calendar.ts';
import { optional, text } from '../../fields.ts';

const instant = z.custom<number>(isInstant, {
  error: ({ input }) =>
    input === undefined || input === null
      ? 'is required'
      : 'must be epoch milliseconds before the year 2200',
});

/** Rule: D-60. */
export const CreateTestClockBody = { now: optional(instant) };

/** Rule: D-60. */
export const AdvanceTestClockBody = { testClockId: text(64), to: instant };
