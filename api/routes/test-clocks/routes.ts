import type { Router } from '@koa/router';
import {
  countBehind,
  findTestClock,
  insertTestClock,
} from '../../../db/repositories/test-clocks.ts';
import { DomainError } from '../../../domain/errors.ts';
import { newId } from '../../../domain/ids.ts';
import { notFound, ok, send } from '../../answers.ts';
import { callerOf, pathParam } from '../../context.ts';
import type { Context, RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { readFields } from '../../fields.ts';
import { answerInTransaction, answerOutcome } from '../../idempotency.ts';
import { setClockTarget, waitUntilReached } from './advance.ts';
import { presentTestClock } from './present.ts';
import { AdvanceTestClockBody, CreateTestClockBody } from './schema.ts';

/** Test clocks set the time of a merchant's test subscriptions. Rule: D-60. */
export function testClockRoutes(router: Router<RequestState>, deps: ApiDeps): void {
  const { db, now, random } = deps;

  router.post('/test-clock/create', async (ctx) => {
    const merchantId = testMerchantId(ctx);
    const body = readFields(CreateTestClockBody, ctx.state.body);
    await answerInTransaction(deps, ctx, async (tx) => {
      const createdAt = now();
      const targetAt = body.now ?? createdAt;
      const id = newId('clk', createdAt, random);
      await insertTestClock(tx, { merchantId, id, targetAt, createdAt });
      return { answer: ok({ testClockId: id, now: targetAt }) };
    });
  });

  router.post('/test-clock/advance', async (ctx) => {
    const merchantId = testMerchantId(ctx);
    const body = readFields(AdvanceTestClockBody, ctx.state.body);
    await answerOutcome(deps, ctx, async ({ isRepeat }) => {
      const clock = await setClockTarget(deps, merchantId, { ...body, isRepeat });
      const isReady = await waitUntilReached(deps, clock);
      return { ...ok(presentTestClock(clock, isReady)), isDefinite: isReady };
    });
  });

  router.get('/test-clock/:testClockId', async (ctx) => {
    const clock = await findTestClock(db, testMerchantId(ctx), pathParam(ctx, 'testClockId'));
    if (!clock) throw notFound('test clock');
    const isReady = (await countBehind(db, clock)) === 0;
    send(ctx, ok(presentTestClock(clock, isReady)));
  });
}

function testMerchantId(ctx: Context): string {
  const merchant = callerOf(ctx);
  if (merchant.mode === 'test') return merchant.id;
  throw new DomainError('operation_not_allowed', 'Test clocks need test credentials.');
}
