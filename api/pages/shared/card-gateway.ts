import { DomainError } from '../../../domain/errors.ts';
import type { PaymentGateway } from '../../../gateways/port.ts';
import type { ApiDeps } from '../../deps.ts';

/** What a hosted page uses of a gateway: the hosted card form at `tokeniserUrl`, or the gateway's own page. */
export type CardGateway = Pick<
  PaymentGateway,
  'name' | 'company' | 'tokeniserUrl' | 'testCards' | 'openCardEntry'
>;

/**
 * Returns the gateway that saves the merchant's new payment methods; null if the merchant has none, so that no
 * page can take a card.
 */
export async function cardGatewayOf(
  { gateways }: Pick<ApiDeps, 'gateways'>,
  merchantId: string,
): Promise<CardGateway | null> {
  try {
    return await gateways.forNewMethods(merchantId);
  } catch (error) {
    if (error instanceof DomainError && error.code === 'operation_not_allowed') return null;
    throw error;
  }
}
