import type { Router } from '@koa/router';
import { listIntents } from '../../../db/repositories/lists.ts';
import { findIntentRecord } from '../../../db/repositories/payments-read.ts';
import { notFound, ok, send } from '../../answers.ts';
import { callerOf, pathParam } from '../../context.ts';
import type { RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { readFields } from '../../fields.ts';
import { answerInTransaction, answerOutcome } from '../../idempotency.ts';
import { listPage } from '../../lists.ts';
import { cancelIntent } from './cancel.ts';
import { insertTokenised } from './charge-tokenised.ts';
import { answerCharge } from './charge.ts';
import { createIntentIn } from './create-intent.ts';
import { presentIntent, presentRefund, presentTokenisedCharge } from './present.ts';
import { readChargeTokenised, readCreateIntent, RefundShape } from './schema.ts';
import { refundIntent } from './refund.ts';

/** The only route whose body is optional. Rule: D-14. */
export const CANCEL_INTENT_PATH = '/payments/cancel/:xIntentId';

export function paymentRoutes(router: Router<RequestState>, deps: ApiDeps): void {
  const { db, now } = deps;

  /** Rule: IF-4.12. */
  router.post('/payments/charge-tokenised-pm', async (ctx) => {
    const body = readChargeTokenised(ctx.state.body);
    await answerCharge(deps, ctx, {
      insert: (tx, ref) => insertTokenised(tx, ref, body, now()),
      present: presentTokenisedCharge,
    });
  });

  /** Rule: IF-4.11. */
  router.post(CANCEL_INTENT_PATH, async (ctx) => cancelIntent(deps, ctx));

  /** An extension. Rule: D-§7. */
  router.post('/payments/create-intent', async (ctx) => {
    const body = readCreateIntent(ctx.state.body);
    const merchantId = callerOf(ctx).id;
    await answerInTransaction(deps, ctx, (tx) => createIntentIn(tx, deps, merchantId, body));
  });

  /** An extension. Rule: D-§7. */
  router.get('/payments/v2/get-intent/:xIntentId', async (ctx) => {
    const record = await findIntentRecord(db, callerOf(ctx).id, pathParam(ctx, 'xIntentId'));
    if (!record) throw notFound('payment intent');
    send(ctx, ok(presentIntent(record, now())));
  });

  /** An extension. Rule: D-§7. */
  router.get('/payments', async (ctx) => {
    const list = await listPage(
      ctx,
      'in',
      (query) => listIntents(db, query),
      (record) => presentIntent(record, now()),
    );
    send(ctx, ok(list));
  });

  /** An extension. Rule: D-§7. */
  router.post('/payments/merchant/refund', async (ctx) => {
    const body = readFields(RefundShape, ctx.state.body);
    const merchantId = callerOf(ctx).id;
    await answerOutcome(deps, ctx, async (call) =>
      ok(presentRefund(await refundIntent(deps, merchantId, body, call))),
    );
  });
}
