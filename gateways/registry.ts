import type { PaymentGateway } from './port.ts';

export interface GatewayRegistry {
  /**
   * Returns the gateway that a row of the merchant names: a payment method's or an attempt's `gateway`.
   * Rejects with {@link UnknownGateway} if this process has no such gateway.
   */
  of(merchantId: string, name: string): Promise<PaymentGateway>;
  /**
   * Returns the gateway that saves the merchant's new payment methods. Rejects with DomainError
   * `operation_not_allowed` if the merchant has none.
   */
  forNewMethods(merchantId: string): Promise<PaymentGateway>;
}

export interface EventSenders {
  /**
   * Returns the gateways that may have sent an event under this name, each with its merchant. There may be two, in
   * test and in live mode; the signature shows which.
   */
  receiving(name: string): Promise<{ merchantId: string; gateway: PaymentGateway }[]>;
}

/**
 * Thrown if a row names a gateway that the merchant or this process does not have. A process that has the gateway
 * can continue the work.
 */
export class UnknownGateway extends Error {
  override readonly name = 'UnknownGateway';

  constructor(gateway: string) {
    super(`this process has no gateway ${gateway}`);
  }
}
