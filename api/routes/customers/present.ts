import type { Customer } from '../../../db/repositories/customers.ts';
import type { PaymentMethod } from '../../../db/repositories/payment-methods.ts';
import { presentCard } from '../../present-card.ts';

/** Rule: IF-4.2. */
export function presentCustomer(customer: Customer) {
  return { customerId: customer.id, customerDetails: customer.details };
}

/** Rule: D-§7. */
export function presentPaymentMethod(method: PaymentMethod) {
  return {
    paymentMethodId: method.id,
    ...presentCard(method),
    customerId: method.customerId,
    status: method.status,
    createdAt: method.createdAt,
  };
}
