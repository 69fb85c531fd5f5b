import type { AmountUse } from '../gateways/port.ts';
import type { ApiDeps } from './deps.ts';
import type { Problem } from './fields.ts';

/**
 * Returns the problems of amounts that the merchant's gateway can never charge or refund. Reads on another
 * connection: call it outside a transaction.
 * @throws DomainError `operation_not_allowed` for a live merchant without a gateway.
 */
export async function gatewayAmountProblems(
  { gateways }: Pick<ApiDeps, 'gateways'>,
  merchantId: string,
  amounts: Readonly<Record<string, number | undefined>>,
  currency: string,
  use: AmountUse = 'charge',
): Promise<Problem[]> {
  const gateway = await gateways.forNewMethods(merchantId);
  return Object.entries(amounts).flatMap(([field, amount]) => {
    const message = amount === undefined ? null : gateway.amountProblem(amount, currency, use);
    return message === null ? [] : [{ field, message }];
  });
}
