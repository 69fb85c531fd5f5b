import type { Router } from '@koa/router';
import { findCustomer, insertCustomer } from '../../../db/repositories/customers.ts';
import { listCustomers } from '../../../db/repositories/lists.ts';
import { listPaymentMethods } from '../../../db/repositories/payment-methods.ts';
import { newId } from '../../../domain/ids.ts';
import { notFound, ok, send } from '../../answers.ts';
import { callerOf, pathParam } from '../../context.ts';
import type { RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { readFields } from '../../fields.ts';
import { answerInTransaction } from '../../idempotency.ts';
import { listPage } from '../../lists.ts';
import { presentCustomer, presentPaymentMethod } from './present.ts';
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

  /** An extension. Rule: D-§7. */
  router.get('/customer/:customerId/payment-method-tokens', async (ctx) => {
    const merchantId = callerOf(ctx).id;
    const customer = await findCustomer(db, merchantId, pathParam(ctx, 'customerId'));
    if (!customer) throw notFound('customer');
    const methods = await listPaymentMethods(db, merchantId, customer.id);
    send(ctx, ok({ data: methods.map(presentPaymentMethod) }));
  });

  /** An extension. Rule: D-§7. */
  router.get('/customer', async (ctx) => {
    const list = await listPage(ctx, 'cus', (query) => listCustomers(db, query), presentCustomer);
    send(ctx, ok(list));
  });
}
