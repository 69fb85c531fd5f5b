import type { Router } from '@koa/router';
import { findCustomer, insertCustomer } from '../../../db/repositories/customers.ts';
import { newId } from '../../../domain/ids.ts';
import { notFound, ok, send } from '../../answers.ts';
import { callerOf, pathParam } from '../../context.ts';
import type { RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { readFields } from '../../fields.ts';
import { answerInTransaction } from '../../idempotency.ts';
import { presentCustomer } from './present.ts';
import { CreateCustomerBody } from './schema.ts';

export function customerRoutes(router: Router<RequestState>, deps: ApiDeps): void {
  const { db, now, random } = deps;

  /** Rule: IF-4.1. */
  router.post('/customer/create', async (ctx) => {
    const { customerDetails } = readFields(CreateCustomerBody, ctx.state.body);
    const merchantId = callerOf(ctx).id;
    await answerInTransaction(deps, ctx, async (tx) => {
      const createdAt = now();
      const id = newId('cus', createdAt, random);
      await insertCustomer(tx, { merchantId, id, details: customerDetails, createdAt });
      return { answer: ok({ customerId: id }) };
    });
  });

  /** Rule: IF-4.2. */
  router.get('/customer/:customerId', async (ctx) => {
    const customer = await findCustomer(db, callerOf(ctx).id, pathParam(ctx, 'customerId'));
    if (!customer) throw notFound('customer');
    send(ctx, ok(presentCustomer(customer)));
  });
}
