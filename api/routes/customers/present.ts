import type { Customer } from '../../../db/repositories/customers.ts';

/** Rule: IF-4.2. */
export function presentCustomer(customer: Customer) {
  return { customerId: customer.id, customerDetails: customer.details };
}
