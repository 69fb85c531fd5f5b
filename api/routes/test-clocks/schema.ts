import { idText, instant, optional } from '../../fields.ts';

/** Rule: D-60. */
export const CreateTestClockBody = { now: optional(instant) };

/** Rule: D-60. */
export const AdvanceTestClockBody = { testClockId: idText(), to: instant };
