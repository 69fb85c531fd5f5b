import type { Router } from '@koa/router';
import { findSetupMethod, insertSetupMethod } from '../../../db/repositories/setup-methods.ts';
import { newId, randomToken } from '../../../domain/ids.ts';
import { notFound, ok, send } from '../../answers.ts';
import { callerOf, pathParam } from '../../context.ts';
import type { RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { readFields } from '../../fields.ts';
import { answerInTransaction } from '../../idempotency.ts';
import { setupMethodPath } from '../../page-paths.ts';
import { payerOf } from '../customers/payer.ts';
import { presentSetupMethod } from './present.ts';
import { CreateSetupMethodShape } from './schema.ts';

export function setupMethodRoutes(router: Router<RequestState>, deps: ApiDeps): void {
  const { db, now, random } = deps;

  /** Rules: IF-4.13, D-11. */
  router.post('/setup-method/create', async (ctx) => {
    const body = readFields(CreateSetupMethodShape, ctx.state.body);
    const { billingDetails, customerId } = body;
    const merchantId = callerOf(ctx).id;
    await answerInTransaction(deps, ctx, async (tx) => {
      const createdAt = now();
      const setupMethodId = newId('sm', createdAt, random);
      const token = randomToken(random);
      await insertSetupMethod(
        tx,
        {
          merchantId,
          setupMethodId,
          customerId: await payerOf(tx, deps, merchantId, { customerId, details: billingDetails }),
          currency: body.currency,
          paymentMethods: body.paymentMethods ?? ['CARD'],
          storeFrontId: body.storeFrontId ?? null,
          billingDetails,
          callbackUrl: body.callbackUrl,
          metadata: body.metadata ?? null,
          phoneNumberRequired: body.phoneNumberRequired ?? false,
          createdAt,
          expiresAt: createdAt + deps.checkoutExpiryMs,
        },
        { id: newId('cs', createdAt, random), token },
      );
      const fwdUrl = `${deps.publicUrl}${setupMethodPath(token)}`;
      return { answer: ok({ setupMethodId, fwdUrl }) };
    });
  });

  /** An extension. Rule: D-§7. */
  router.get('/setup-method/:setupMethodId', async (ctx) => {
    const session = await findSetupMethod(db, callerOf(ctx).id, pathParam(ctx, 'setupMethodId'));
    if (!session) throw notFound('setup method');
    send(ctx, ok(presentSetupMethod(session, now())));
  });
}
