import { describe, expect, it } from 'vitest';
import { settingsChanges } from '../../cli/merchant/configure.ts';
import { DEFAULT_RETRY_PLAN } from '../../domain/retry-plan.ts';

const current = { retryPlan: DEFAULT_RETRY_PLAN };
const kept = { ...current, webhookRetention: { bodyDays: 60, attemptDays: 20 } };

describe('how long a merchant’s events are kept', () => {
  it.each([
    [{ keepEvents: '90' }, current, { bodyDays: 90, attemptDays: 90 }],
    [{ keepAttempts: '7' }, current, { bodyDays: 30, attemptDays: 7 }],
    [{ keepEvents: '10' }, kept, { bodyDays: 10, attemptDays: 10 }],
    [{ keepEvents: '90', keepAttempts: '1' }, kept, { bodyDays: 90, attemptDays: 1 }],
  ])('is, after %j, %j: %j [D-56]', (options, settings, webhookRetention) => {
    expect(settingsChanges(options, settings)).toEqual({ webhookRetention });
  });

  it.each([
    [{ keepEvents: '0' }, 'each must be a number of days from 1 to 3650'],
    [{ keepEvents: '3651' }, 'each must be a number of days from 1 to 3650'],
    [{ keepAttempts: '1.5' }, 'each must be a number of days from 1 to 3650'],
    [{ keepAttempts: '31' }, 'attempts cannot be kept longer than events'],
  ])('is not changed by %j: %s [D-56]', (options, problem) => {
    const message = `Nothing was changed.\n  --keep-events, --keep-attempts: ${problem}`;
    expect(() => settingsChanges(options, current)).toThrow(message);
  });
});
