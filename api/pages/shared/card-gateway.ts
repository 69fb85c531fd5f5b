import { DomainError } from '../../../domain/errors.ts';
import type { PaymentGateway } from '../../../gateways/port.ts';
import type { ApiDeps } from '../../deps.ts';

/**
 * The part of a gateway that a hosted page needs. Payers enter a card either in the hosted card form, which posts to
 * `tokeniserUrl`, or on the gateway's own page, which `openCardEntry` opens.
 */
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
