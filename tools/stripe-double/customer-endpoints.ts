import { newId } from './book.ts';
import { invalid } from './errors.ts';
import { metadata, text } from './form.ts';
import { reading } from './endpoint.ts';
import type { Endpoint } from './endpoint.ts';
import { account, customer } from './shapes.ts';

export const customerEndpoints: Endpoint[] = [
  {
    method: 'GET',
    path: '/v1/account',
    params: ['expand'],
    handle: async ({ book }) => {
      const [row] = await book.tx<{ created: string }[]>`
        select created from stripe_double.account where id = ${book.accountId}`;
      return { status: 200, body: account(book.accountId, Number(row?.created)) };
    },
  },
  {
    method: 'POST',
    path: '/v1/customers',
    params: ['email', 'name', 'metadata', 'expand'],
    handle: async ({ book, now }, { params }) => {
      const id = newId('cus');
      const fields = {
        email: text(params, 'email'),
        name: text(params, 'name'),
        metadata: metadata(params),
      };
      return { status: 200, body: (await book.insert('customer', customer(id, now, fields))).body };
    },
  },
  reading('customer', '/v1/customers'),
  reading('payment_method', '/v1/payment_methods', 'payment_method'),
  {
    method: 'POST',
    path: '/v1/payment_methods/:id/detach',
    params: ['expand'],
    handle: async (scope, { id }) => {
      const method = await scope.book.lock('payment_method', id, 'payment_method');
      if (method.body['customer'] === null) {
        throw invalid(
          'The payment method you provided is not attached to a customer so detachment is impossible.',
        );
      }
      const detached = await scope.book.update(method, { customer: null }, { isDetached: true });
      scope.emit('payment_method.detached', detached.body);
      return { status: 200, body: detached.body };
    },
  },
];
