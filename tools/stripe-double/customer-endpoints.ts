import { newId } from './book.ts';
import { invalid } from './errors.ts';
import { metadata, text } from './form.ts';
import { reading, serving } from './endpoint.ts';
import type { Endpoint } from './endpoint.ts';
import { account, customer } from './shapes.ts';

export const customerEndpoints: Endpoint[] = [
  serving('GET', '/v1/account', [], async ({ book }) => {
    const [row] = await book.tx<{ created: string }[]>`
      select created from stripe_double.account where id = ${book.accountId}`;
    return account(book.accountId, Number(row?.created));
  }),
  serving(
    'POST',
    '/v1/customers',
    ['email', 'name', 'metadata'],
    async ({ book, now }, { params }) => {
      const fields = {
        email: text(params, 'email'),
        name: text(params, 'name'),
        metadata: metadata(params),
      };
      return (await book.insert('customer', customer(newId('cus'), now, fields))).body;
    },
  ),
  reading('customer', '/v1/customers'),
  reading('payment_method', '/v1/payment_methods', 'payment_method'),
  serving('POST', '/v1/payment_methods/:id/detach', [], async (scope, { id }) => {
    const method = await scope.book.lock('payment_method', id, 'payment_method');
    if (method.body['customer'] === null) {
      throw invalid(
        'The payment method you provided is not attached to a customer so detachment is impossible.',
      );
    }
    const detached = await scope.book.update(method, { customer: null }, { isDetached: true });
    scope.emit('payment_method.detached', detached.body);
    return detached.body;
  }),
];
