import { expect, it } from 'vitest';
import type { Context } from '../../api/http/request.ts';
import { createPageLimits } from '../../api/pages/shared/limits.ts';

const ctx = { ip: '203.0.113.9' } as Context;

it('one address opens at most 30 card pages of a live merchant in ten minutes [D-11]', async () => {
  const limits = createPageLimits();
  const open = () => limits.countOpening(ctx, { merchantId: 'mer_a', mode: 'live' });
  for (let opened = 0; opened < 30; opened += 1) await open();
  await expect(open()).rejects.toMatchObject({ code: 'rate_limit_exceeded' });
  await limits.countOpening(ctx, { merchantId: 'mer_b', mode: 'live' });
});

it('the openings of card pages are not limited in test mode [D-11]', async () => {
  const limits = createPageLimits();
  const open = () => limits.countOpening(ctx, { merchantId: 'mer_a', mode: 'test' });
  for (let opened = 0; opened < 100; opened += 1) await open();
  // The openings in test mode do not count towards the limit of live mode either.
  const live = limits.countOpening(ctx, { merchantId: 'mer_a', mode: 'live' });
  await expect(live).resolves.toBeUndefined();
});
